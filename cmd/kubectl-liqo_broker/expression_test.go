// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// TestExpressions prints objects and values by what somebody asks for of them.
func TestExpressions(t *testing.T) {
	for line, want := range map[string]string{
		"providers -o jsonpath={.items[*].status.clusterName}":                                       "milan oslo\x1b[31m\u202e turin",
		"providers milan -o jsonpath={.items[0].kind}/{.items[0].status.nothing}":                    "Provider/",
		"consumers -o go-template={{range.items}}{{.metadata.name}},{{end}}":                         "44444444-eeee,33333333-dddd,",
		"consumers rome -o custom-columns=NAME:.status.clusterName,POOL:.metadata.labels.pool":       "NAME   POOL\nrome   <none>\n",
		"consumers rome --no-headers -o custom-columns=NAME:{.status.clusterName},ID:.metadata.name": "rome   33333333-dddd\n",
		"status -o jsonpath={.healthy}{.providers.total}":                                            "false3",
		"where -A -o custom-columns=POD:.pod,ON:.provider.name":                                      "POD   ON\n",
	} {
		out, _, err := newCLI(t, federation()...).run(t, line)
		if err != nil && !strings.HasPrefix(line, "status") || out != want {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
}

// TestSelects lists the clusters with labels.
func TestSelects(t *testing.T) {
	objects := federation()
	objects[0].SetLabels(map[string]string{"tier": "gold"})
	for line, want := range map[string]string{
		"providers -o name -l tier=gold":       "provider.brokering.liqo.io/11111111-aaaa\n",
		"providers -o name -l tier!=gold":      "provider.brokering.liqo.io/22222222-cccc\nprovider.brokering.liqo.io/22222222-bbbb\n",
		"providers -o name turin -l tier=gold": "",
		"consumers -o name -l tier":            "",
	} {
		if out, _, err := newCLI(t, objects...).run(t, line); err != nil || out != want {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
}

// TestWatches follows providers, of which one changes, until somebody ends it.
func TestWatches(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newCLI(t, federation()...)
	read, write := io.Pipe()
	lines := make(chan string, 16)
	var printing sync.WaitGroup
	printing.Go(func() {
		text := make([]byte, 4096)
		for {
			n, err := read.Read(text)
			if err != nil {
				return
			}
			lines <- string(text[:n])
		}
	})
	next := func() string {
		t.Helper()
		select {
		case line := <-lines:
			return line
		case <-time.After(30 * time.Second):
			t.Fatal("nothing is printed")
			return ""
		}
	}
	root := c.rootTo(t, genericiooptions.IOStreams{In: strings.NewReader(""), Out: write, ErrOut: io.Discard})
	root.SetArgs([]string{"providers", "-w", "-o", "name"})
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()

	// All, and then only what changes.
	for range 3 {
		next()
	}
	var milan v1alpha1.Provider
	if err := c.client.Get(ctx, client.ObjectKey{Name: "11111111-aaaa"}, &milan); err != nil {
		t.Fatal(err)
	}
	milan.Spec.Scheduling = v1alpha1.SchedulingCordoned
	if err := c.client.Update(ctx, &milan); err != nil {
		t.Fatal(err)
	}
	if line := next(); line != "provider.brokering.liqo.io/11111111-aaaa\n" {
		t.Errorf("%q", line)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	write.Close()
	printing.Wait()
}
