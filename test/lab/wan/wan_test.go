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

func TestPair(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	gateway := netip.MustParsePrefix("172.30.0.254/24")
	w := Of(start(t, node.Spec{Name: "wan"}, func(id process.ID) error { return Of(id).Configure(gateway) }))
	ends := map[string]End{}
	for name, address := range map[string]string{"a": "172.30.0.1", "b": "172.30.0.2", "c": "172.30.0.3"} {
		end := End{Address: netip.MustParseAddr(address)}
		spec := node.Spec{Name: name, Address: netip.PrefixFrom(end.Address, 24), Gateway: gateway.Addr()}
		end.Init = start(t, spec, func(id process.ID) error { return w.Connect(name, id) })
		ends[name] = end
	}
	reaches := func(from, to End) bool {
		var out bytes.Buffer
		ping := node.Command{Args: []string{"ping", "-c", "1", "-W", "1", to.Address.String()}, Stdout: &out, Stderr: &out}
		return node.Exec(t.Context(), from.Init, ping) == nil
	}
	for _, up := range []bool{false, false, true, true} { // What is done twice is as if done once.
		if err := SetPair(t.Context(), ends["a"], ends["b"], up); err != nil {
			t.Fatal(err)
		}
		for _, way := range [][2]string{{"a", "b"}, {"b", "a"}} {
			if got := reaches(ends[way[0]], ends[way[1]]); got != up {
				t.Errorf("%s reaches %s: %t after SetPair(%t)", way[0], way[1], got, up)
			}
			if loses, err := ends[way[0]].Loses(t.Context(), ends[way[1]].Address); err != nil || loses == up {
				t.Errorf("%s loses what %s sends: %t, %v after SetPair(%t)", way[0], way[1], loses, err, up)
			}
		}
		for _, name := range []string{"a", "b"} {
			if !reaches(ends[name], ends["c"]) {
				t.Errorf("%s does not reach c after SetPair(%t) of a and b", name, up)
			}
		}
	}
}
