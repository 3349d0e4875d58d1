// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package wan

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// TestMain is the init of the nodes that the tests start, as node.Start demands.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == node.InitCommand {
		fmt.Fprintln(os.Stderr, node.Init(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func start(t *testing.T, spec node.Spec, connect func(process.ID) error) process.ID {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	spec.Dir = t.TempDir()
	var init process.ID
	t.Cleanup(func() {
		if err := init.Kill(context.Background()); err != nil {
			t.Errorf("end node: %v", err)
		}
	})
	if err := node.Start(ctx, spec, nil, func(id process.ID) error { init = id; return nil }, connect); err != nil {
		t.Fatal(err)
	}
	return init
}

func TestWAN(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	gateway := netip.MustParsePrefix("172.30.0.254/24")
	holder := start(t, node.Spec{Name: "wan"}, func(id process.ID) error { return Of(id).Configure(gateway) })
	w := Of(holder)
	nodes := map[string]process.ID{}
	for name, address := range map[string]string{"a": "172.30.0.1/24", "b": "172.30.0.2/24"} {
		spec := node.Spec{Name: name, Address: netip.MustParsePrefix(address), Gateway: gateway.Addr()}
		nodes[name] = start(t, spec, func(id process.ID) error { return w.Connect(name, id) })
	}
	reaches := func(address string) bool {
		var out bytes.Buffer
		err := node.Exec(t.Context(), nodes["a"], node.Command{Args: []string{"ping", "-c", "1", "-W", "1", address}, Stdout: &out, Stderr: &out})
		return err == nil
	}
	for name, tc := range map[string]struct {
		reason  string
		address string
		want    bool
	}{
		"Peer":    {"nodes are connected", "172.30.0.2", true},
		"Outside": {"nothing leaves the lab", "192.0.2.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reaches(tc.address); got != tc.want {
				t.Errorf("%s reached: %t, want %t: %s", tc.address, got, tc.want, tc.reason)
			}
		})
	}
	for _, up := range []bool{false, true} {
		if err := w.SetLink("b", up); err != nil {
			t.Fatal(err)
		}
		if got, err := w.LinkUp("b"); err != nil || got != up {
			t.Errorf("LinkUp = %t, %v after SetLink(%t)", got, err, up)
		}
		// A node that could not find its peer tries again only after a moment.
		got := reaches("172.30.0.2")
		for deadline := time.Now().Add(10 * time.Second); got != up && time.Now().Before(deadline); {
			got = reaches("172.30.0.2")
		}
		if got != up {
			t.Errorf("reached: %t after SetLink(%t)", got, up)
		}
	}
}
