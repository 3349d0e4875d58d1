// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func TestBook(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		grants []Grant
		want   corev1.ResourceList // Of cluster c; nil if it is offered nothing at all.
		late   bool
	}{
		"None": {"No contract, no resources.", nil, nil, false},
		"Others": {
			"The contract is for another cluster.", []Grant{{Buyer: "a", Cluster: "d", Resources: list("1", "1Gi"), InForce: true}}, nil, false,
		},
		"One": {
			"A contract gives what was sold.", []Grant{{Buyer: "a", Cluster: "c", Resources: list("1", "1Gi"), InForce: true}},
			list("1", "1Gi"), false,
		},
		"Sum": {
			"Two contracts give their sum.", []Grant{{Buyer: "a", Cluster: "c", Resources: list("1", "1Gi"), InForce: true},
				{Buyer: "a", Cluster: "c", Resources: list("500m", "1Gi"), InForce: true}}, list("1500m", "2Gi"), false,
		},
		"Suspended": {
			"What is not in force takes back what it gave.", []Grant{{Buyer: "a", Cluster: "c", Resources: list("1", "1Gi")}}, list("0", "0"), false,
		},
		"Rest": {
			"One of two has ended.", []Grant{{Buyer: "a", Cluster: "c", Resources: list("1", "1Gi")},
				{Buyer: "a", Cluster: "c", Resources: list("2", "1Gi"), InForce: true}}, list("2", "1Gi"), false,
		},
		"Thief": {
			"Another party names a cluster that is not its own.", []Grant{{Buyer: "a", Cluster: "c", Resources: list("1", "1Gi"), InForce: true},
				{Buyer: "b", Cluster: "c", Resources: list("9", "9Gi"), InForce: true}}, list("1", "1Gi"), true,
		},
		"Return": {
			"It stays the first one's after its contract.", []Grant{{Buyer: "a", Cluster: "c", Resources: list("1", "1Gi")},
				{Buyer: "b", Cluster: "c", Resources: list("9", "9Gi"), InForce: true}}, list("0", "0"), true,
		},
		"NoCluster": {
			"The buyer has not said for which cluster yet.", []Grant{{Buyer: "a", Resources: list("1", "1Gi"), InForce: true}}, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := NewBook(tc.grants)
			if errors.Is(err, ErrTaken) != tc.late {
				t.Errorf("%s\nNewBook(): %v", tc.reason, err)
			}
			offers := b.NodeOffers("c")
			if tc.want == nil {
				if len(offers) != 0 || b.Granted("c") != nil {
					t.Errorf("%s\noffered: %v", tc.reason, offers)
				}
				return
			}
			if len(offers) != 1 || offers[0].Node != "" || !resources.Equal(offers[0].Offered, tc.want) {
				t.Errorf("%s\noffered: %v, want %v", tc.reason, offers, tc.want)
			}
		})
	}
}

// TestBookOwnsItsSums reads a book whose grants are changed afterwards.
func TestBookOwnsItsSums(t *testing.T) {
	grants := []Grant{{Buyer: "a", Cluster: "c", Resources: list("1", "1Gi"), InForce: true}}
	b, err := NewBook(grants)
	if err != nil {
		t.Fatal(err)
	}
	grants[0].Resources[corev1.ResourceCPU] = resource.MustParse("9")
	if got := b.Granted("c"); !resources.Equal(got, list("1", "1Gi")) {
		t.Errorf("the book has changed: %v", got)
	}
}

// TestOffersToThoseLetIn offers a cluster that people have let in a node of nothing, and one that has bought what it has bought.
func TestOffersToThoseLetIn(t *testing.T) {
	book, err := NewBook([]Grant{{Buyer: "a", Cluster: "buyer", Resources: list("1", "1Gi"), InForce: true}})
	if err != nil {
		t.Fatal(err)
	}
	o := Offers{Book: book, LetIn: map[cluster.ID]bool{"buyer": true, "friend": true}}
	if got := o.NodeOffers("buyer"); len(got) != 1 || !resources.Equal(got[0].Offered, list("1", "1Gi")) {
		t.Errorf("who has bought is offered %v", got)
	}
	nothing := corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}, corev1.ResourcePods: {}}
	if got := o.NodeOffers("friend"); len(got) != 1 || len(got[0].Offered) != len(nothing) || !resources.Equal(got[0].Offered, nothing) {
		t.Errorf("who is let in is offered %v", got)
	}
	if got := o.NodeOffers("stranger"); len(got) != 0 {
		t.Errorf("a stranger is offered %v", got)
	}
}
