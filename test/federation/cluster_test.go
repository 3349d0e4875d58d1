// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// TestKnown holds what a cluster knows of another one, and of it alone.
func TestKnown(t *testing.T) {
	b, c := cluster.Identity{ID: "id-b", Name: "b"}, cluster.Identity{ID: "id-c", Name: "c"}
	twin := func(name string, of cluster.Identity) client.Object {
		ns := liqotest.TwinNamespace(name+"-"+of.Name, of)
		ns.Annotations["liqo.io/original-name"] = name
		return ns
	}
	plain := liqotest.TwinNamespace("shop", b)
	plain.Annotations = nil
	tunnel := func(to cluster.Identity) client.Object {
		made := liqotest.Tunnel(to, "1ms", time.Unix(1, 0))
		made.Spec.RemotePodCIDR, made.Spec.RemoteNATPodCIDR = "10.60.0.0/16", "None"
		return made
	}
	of := func(id cluster.Identity) []client.Object {
		return []client.Object{
			liqotest.ForeignCluster(id, true, false), tunnel(id), twin("blog", id), twin("shop", id), plain,
		}
	}
	for name, tc := range map[string]struct {
		reason                string
		has                   []client.Object
		peer, link, twin, not bool
	}{
		"All":         {"It knows the cluster.", of(b), true, true, true, false},
		"Another":     {"It knows another cluster.", of(c), false, false, false, true},
		"Nobody":      {"It knows nobody.", nil, false, false, false, true},
		"Negotiating": {"Nobody knows how addresses are seen.", []client.Object{liqotest.Tunnel(b, "", time.Time{})}, false, false, false, true},
		"Node":        {"A node is left.", []client.Object{liqotest.VirtualNode(b, true)}, false, false, false, false},
		"OtherNode":   {"A node of another cluster is none.", []client.Object{liqotest.VirtualNode(c, true)}, false, false, false, true},
		"NoTwin":      {"A namespace that Liqo has not made is no twin.", []client.Object{plain}, false, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			at, other := newCluster(t, v09.Line{}, "a", tc.has...), newCluster(t, v09.Line{}, "b")
			if tenant, err := at.Tenant(t.Context(), other); (err == nil) != tc.peer || tc.peer && tenant != liqotest.Tenant(b) {
				t.Errorf("%s The tenant namespace is %q, %v", tc.reason, tenant, err)
			}
			if link, err := at.Link(t.Context(), other); err != nil || (link != nil) != tc.link {
				t.Errorf("%s The tunnel is %+v, %v", tc.reason, link, err)
			}
			twin, err := at.Twin(t.Context(), other, "shop")
			if tc.twin && (err != nil || twin != "shop-b") || !tc.twin && !errors.Is(err, ErrNoTwin) {
				t.Errorf("%s The twin is %q, %v", tc.reason, twin, err)
			}
			if err := at.HasForgotten(t.Context(), other); (err == nil) != tc.not {
				t.Errorf("%s It has forgotten: %v", tc.reason, err)
			}
		})
	}
	says := newCluster(t, v09.Line{}, "a", manager("--b", "--kubelet-image=example.com/vk:1"))
	if image, err := says.KubeletImage(t.Context()); err != nil || image != "example.com/vk:1" {
		t.Errorf("the virtual kubelet is %q, %v", image, err)
	}
	if image, err := newCluster(t, v09.Line{}, "a", manager("--b")).KubeletImage(t.Context()); err == nil {
		t.Errorf("nobody says which virtual kubelet there is, and it is %q", image)
	}
}
