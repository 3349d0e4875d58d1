// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestGetFillsOnce(t *testing.T) {
	dir := At(t.TempDir())
	var fills atomic.Int32
	fill := func(_ context.Context, dir string) error {
		fills.Add(1)
		return os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			path, err := dir.Get(t.Context(), "key", fill)
			if err != nil {
				t.Errorf("Get: %v", err)
				return
			}
			if data, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(data) != "content" {
				t.Errorf("entry has %q, %v", data, err)
			}
		})
	}
	wait.Wait()
	if n := fills.Load(); n != 1 {
		t.Errorf("filled %d times, want once", n)
	}
}

func TestGetForgetsFailures(t *testing.T) {
	dir := At(t.TempDir())
	failure := errors.New("no disk")
	_, err := dir.Get(t.Context(), "key", func(_ context.Context, dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o600), failure)
	})
	if !errors.Is(err, failure) {
		t.Fatalf("error %v, want %v", err, failure)
	}
	path, err := dir.Get(t.Context(), "key", func(context.Context, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) != 0 {
		t.Errorf("entry has %v, %v: a failed fill left something behind", entries, err)
	}
}

func TestKey(t *testing.T) {
	base := Key("name", []byte("a"), []byte("b"))
	for name, tc := range map[string]struct {
		reason string
		other  string
		equal  bool
	}{
		"Same":      {"a key is stable", Key("name", []byte("a"), []byte("b")), true},
		"Name":      {"the name counts", Key("other", []byte("a"), []byte("b")), false},
		"Boundary":  {"inputs must not run into each other", Key("name", []byte("ab"), nil), false},
		"ManyInput": {"the number of inputs counts", Key("name", []byte("a"), []byte("b"), nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if (base == tc.other) != tc.equal {
				t.Errorf("%s and %s: %s", base, tc.other, tc.reason)
			}
		})
	}
}
