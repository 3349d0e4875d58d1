// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/connector/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/party"
)

// TestWatches wakes for a seller that cannot be asked, and ends with its context.
func TestWatches(t *testing.T) {
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := party.FirstKey(key.Public())
	c, err := negotiation.NewClient(negotiation.ClientConfig{
		Endpoint: "https://127.0.0.1:1", Seller: keys, Buyer: keys, Key: func() party.Key { return key },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWatches()
	if w.start("p", c, "p", 0) {
		t.Error("it waits for a seller before it was started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	for begin := time.Now(); !w.start("p", c, "p", 0); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("it never starts")
		}
	}
	select {
	case woken := <-w.woken:
		if woken.Object.GetName() != "p" {
			t.Errorf("woken: %s", woken.Object.GetName())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody is woken")
	}
	for range 3 {
		w.start("p", c, "p", 0) // Nobody takes what it tells.
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}
