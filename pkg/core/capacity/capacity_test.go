// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

func TestHas(t *testing.T) {
	measured := list("cpu", "4", "memory", "8Gi", "pods", "110")
	cases := map[string]struct {
		reason     string
		rule       Rule
		declared   corev1.ResourceList
		overcommit int32
		want       corev1.ResourceList
	}{
		"Measured": {
			reason: "What people declare does not matter.",
			rule:   Measured, declared: list("cpu", "1"), overcommit: 100, want: measured,
		},
		"Default": {reason: "Without a rule, what is measured counts.", overcommit: 100, want: measured},
		"Declared": {
			reason: "What people do not declare is zero.", rule: Declared, declared: list("cpu", "16"), overcommit: 100, want: list("cpu", "16"),
		},
		"Min": {
			reason: "People lower what is measured, and never raise it.",
			rule:   Min, declared: list("cpu", "2", "memory", "1Ti", "example.com/gpu", "1"), overcommit: 100,
			want: list("cpu", "2", "memory", "8Gi", "pods", "110"),
		},
		"Overcommit": {reason: "Half as much again.", rule: Measured, overcommit: 150, want: list("cpu", "6", "memory", "12Gi", "pods", "165")},
		"Undercommit": {
			reason: "A half stays with the provider.", rule: Min, declared: list("cpu", "1"), overcommit: 50,
			want: list("cpu", "500m", "memory", "4Gi", "pods", "55"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Has(tc.rule, measured, tc.declared, tc.overcommit); !resources.Equal(tc.want, got) {
				t.Errorf("%s\nHas() = %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestOffered(t *testing.T) {
	type uses map[cluster.ID]corev1.ResourceList
	of := func(cpu string, used uses) Account {
		return Account{Capacity: list("cpu", cpu), Offers: OffersAll, Used: used}
	}
	off := func(cpu string, used uses) Account {
		return Account{Capacity: list("cpu", cpu), Used: used}
	}
	cordoned := func(cpu string, used uses) Account {
		return Account{Capacity: list("cpu", cpu), Offers: OffersUsed, Used: used}
	}
	cases := map[string]struct {
		reason   string
		accounts map[cluster.ID]Account
		terms    map[cluster.ID]Terms
		consumer cluster.ID
		want     string
	}{
		"Sum": {
			reason:   "One consumer is offered the sum, what it uses included.",
			accounts: map[cluster.ID]Account{"p": of("4", uses{"c": list("cpu", "3")}), "q": of("2", nil)}, consumer: "c", want: "6",
		},
		"Others": {
			reason:   "What others use is not offered, and so is what nobody knows the user of.",
			accounts: map[cluster.ID]Account{"p": of("4", uses{"d": list("cpu", "3")}), "q": of("2", uses{"": list("cpu", "500m")})}, consumer: "c",
			want: "2500m",
		},
		"Self": {
			reason:   "A cluster is not offered its own.",
			accounts: map[cluster.ID]Account{"c": of("4", nil), "q": of("2", nil)}, consumer: "c", want: "2",
		},
		"OnItself": {
			reason:   "What runs where it came from is none of the broker's resources.",
			accounts: map[cluster.ID]Account{"c": of("4", uses{"c": list("cpu", "1")}), "q": of("2", nil)}, consumer: "c", want: "2",
		},
		"TurnedOff": {
			reason:   "A provider that is disabled adds nothing.",
			accounts: map[cluster.ID]Account{"p": off("4", nil), "q": of("2", nil)}, consumer: "c", want: "2",
		},
		"Draining": {
			reason:   "What still runs on a provider that is disabled has to find its place on the others.",
			accounts: map[cluster.ID]Account{"p": off("4", uses{"c": list("cpu", "1")}), "q": of("2", nil)}, consumer: "c", want: "2",
		},
		"Cordoned": {
			reason:   "What runs on a provider that is cordoned stays, and takes nothing from the others. What is free there is offered to nobody.",
			accounts: map[cluster.ID]Account{"p": cordoned("4", uses{"c": list("cpu", "1"), "d": list("cpu", "1")}), "q": of("2", nil)},
			consumer: "c", want: "3",
		},
		"CordonedForOthers": {
			reason:   "It adds nothing for who uses nothing of it.",
			accounts: map[cluster.ID]Account{"p": cordoned("4", uses{"c": list("cpu", "1")}), "q": of("2", nil)}, consumer: "d", want: "2",
		},
		"CordonedWithLess": {
			reason:   "What it has not counts for nothing.",
			accounts: map[cluster.ID]Account{"p": cordoned("1", uses{"c": list("cpu", "3")}), "q": of("4", nil)}, consumer: "c", want: "5",
		},
		"CordonedItself": {
			reason:   "Its own cluster is not offered what others use.",
			accounts: map[cluster.ID]Account{"c": cordoned("4", uses{"d": list("cpu", "1")}), "q": of("2", nil)}, consumer: "c", want: "2",
		},
		"AtLeastUsed": {
			reason:   "A consumer is offered at least what it uses.",
			accounts: map[cluster.ID]Account{"p": off("4", uses{"c": list("cpu", "3")}), "q": of("2", nil)}, consumer: "c", want: "3",
		},
		"Shrunk": {
			reason:   "A provider that has less than is used of it adds what is left to the consumer, and takes nothing from the others.",
			accounts: map[cluster.ID]Account{"p": of("2", uses{"c": list("cpu", "1"), "d": list("cpu", "4")}), "q": of("2", nil)},
			consumer: "c", want: "2",
		},
		"Reserved": {
			reason:   "What is reserved for others and not used by them is not offered.",
			accounts: map[cluster.ID]Account{"p": of("8", uses{"d": list("cpu", "1")})},
			terms:    map[cluster.ID]Terms{"d": {Reserved: list("cpu", "3"), Share: 100}}, consumer: "c", want: "5",
		},
		"OwnReservation": {
			reason:   "One's own reservation is offered.",
			accounts: map[cluster.ID]Account{"p": of("8", uses{"d": list("cpu", "1")})},
			terms:    map[cluster.ID]Terms{"d": {Reserved: list("cpu", "3"), Share: 100}}, consumer: "d", want: "8",
		},
		"OutOfReach": {
			reason:   "Reservations that nobody can serve leave nothing, and not less.",
			accounts: map[cluster.ID]Account{"p": of("8", nil)},
			terms:    map[cluster.ID]Terms{"d": {Reserved: list("cpu", "30"), Share: 100}}, consumer: "c", want: "0",
		},
		"Limit": {
			reason:   "The limit cuts last.",
			accounts: map[cluster.ID]Account{"p": of("8", uses{"c": list("cpu", "3")})},
			terms:    map[cluster.ID]Terms{"c": {Limit: list("cpu", "2"), Share: 100}}, consumer: "c", want: "2",
		},
		"Share": {
			reason:   "Of what is free the consumer is offered its share, above what it uses or has reserved.",
			accounts: map[cluster.ID]Account{"p": of("8", uses{"c": list("cpu", "1"), "d": list("cpu", "1")})},
			terms:    map[cluster.ID]Terms{"c": {Reserved: list("cpu", "2"), Share: 50}}, consumer: "c", want: "4500m",
		},
		"NoShare": {
			reason:   "Without a share there is the reservation.",
			accounts: map[cluster.ID]Account{"p": of("8", nil)},
			terms:    map[cluster.ID]Terms{"c": {Reserved: list("cpu", "2")}}, consumer: "c", want: "2",
		},
		"Nobody": {reason: "What is unknown is zero.", consumer: "c", want: "0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := NewSnapshot(tc.accounts, tc.terms, nil, nil).Offered(tc.consumer)
			if !resources.Equal(list("cpu", tc.want), got) {
				t.Errorf("%s\nOffered() = %v, want %s", tc.reason, got, tc.want)
			}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
				if _, ok := got[name]; !ok {
					t.Errorf("%s is missing: Liqo needs it", name)
				}
			}
		})
	}
}
