// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
)

func cores(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n), corev1.ResourcePods: resource.MustParse("1")}
}

func TestProviders(t *testing.T) {
	open := placement.Provider{ID: "open", Health: placement.Ready, Room: cores("4")}
	with := func(id cluster.ID, change func(*placement.Provider)) placement.Provider {
		p := open
		p.ID = id
		change(&p)
		return p
	}
	s := placement.Snapshot{Providers: []placement.Provider{
		open,
		with("passed", func(p *placement.Provider) { p.Namespace = placement.Passed }),
		with("refusing", func(p *placement.Provider) { p.Namespace = placement.Refused }),
		with("off", func(p *placement.Provider) { p.Scheduling, p.Health = placement.Drained, placement.NotReady }),
		with("cordoned", func(p *placement.Provider) { p.Scheduling = placement.Cordoned }),
		with("withdrawn", func(p *placement.Provider) { p.Health = placement.Withdrawn }),
		with("ending", func(p *placement.Provider) { p.Health = placement.Ending }),
		with("lost", func(p *placement.Provider) { p.LostSince = time.Unix(1, 0) }),
		with("unchosen", func(p *placement.Provider) { p.Choice = placement.Unchosen }),
		with("barred", func(p *placement.Provider) { p.Choice = placement.Barred }),
		with("unreached", func(p *placement.Provider) { p.ViewUnknown = true }),
	}}
	plan := placement.Decide(time.Unix(2, 0), s)
	got := map[cluster.ID]string{}
	for _, p := range Of(s, plan, 0).Providers.Items {
		got[p.ID] = strings.Join(p.Why, "; ")
		if p.NewPods != (p.ID == "open") {
			t.Errorf("%s gets new pods: %t", p.ID, p.NewPods)
		}
	}
	want := map[cluster.ID]string{
		"open": "", "passed": "the namespace came from it, or through it",
		"refusing": "it cannot create the namespace: it may have another one of that name",
		"off":      "it is drained; it is not ready", "withdrawn": "it takes back what it offers", "ending": "the peering with it ends",
		"lost": "it is out of reach", "unchosen": "the policy has not chosen it",
		"cordoned": "it is cordoned",
		"barred":   "the policy cannot decide at present, and may exclude it", "unreached": "the consumer has not told that it can reach it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("why not: -want +got\n%s", diff)
	}
	s.Level = true
	if got := Of(s, placement.Plan{Place: []cluster.ID{"other"}}, 0).Providers.Items; !slices.ContainsFunc(got, func(p Provider) bool {
		return p.ID == "open" && slices.Equal(p.Why, []string{"the policy spreads replicas evenly, and fewer run elsewhere"})
	}) {
		t.Errorf("where more replicas run than elsewhere: %+v", got)
	}
}

func TestPods(t *testing.T) {
	s := placement.Snapshot{
		Selected:  []cluster.ID{"a"},
		Providers: []placement.Provider{{ID: "a", Room: cores("2")}, {ID: "b", Room: cores("64")}},
		Copies: []placement.Copy{
			{Pod: "runs", Spot: placement.OnProvider, Provider: "a", Ready: true},
			{Pod: "held", Spot: placement.OnProvider, Provider: "b"},
			{Pod: "moves", Spot: placement.OnProvider, Provider: "b"},
			{Pod: "replaced", Spot: placement.OnProvider, Provider: "b"},
			{Pod: "astray", Spot: placement.OnBroker},
			{Pod: "absent", Missing: true},
			{Pod: "leaves", Leaving: true},
			{Pod: "outdated", Outdated: true},
			{Pod: "pinned", Pinned: true},
			{Pod: "large", Requests: cores("3")},
			{Pod: "small", Requests: cores("1")},
			{Workload: "gone", Missing: true},
		},
	}
	plan := placement.Plan{
		Place: []cluster.ID{"a"}, Recreate: []string{"astray", "outdated"}, Move: []string{"moves"}, Replace: []string{"replaced"},
		Held: []placement.Held{{Pod: "held", Provider: "b", Reason: placement.NoRoom}},
	}
	n := Of(s, plan, 1500*time.Millisecond)
	var got []string
	for _, p := range n.Pods.Items {
		got = append(got, fmt.Sprintf("%s %s %q: %s", p.Name, p.At, p.Plan, p.Why))
	}
	want := []string{
		`astray OnBroker "Recreate": `,
		`outdated Nowhere "Recreate": it was made for other providers than those on which pods are placed now`,
		`absent Nowhere "": it does not exist yet, or no more`,
		`large Nowhere "": no provider that takes new pods has room for what it requests`,
		`leaves Nowhere "": it is being deleted`,
		`pinned Nowhere "": its consumer has chosen its provider, which has not taken it yet`,
		`small Nowhere "": the scheduler has not placed it yet: a provider has room for what it requests`,
		`held OnProvider "Stay": no other provider has room for it`,
		`moves OnProvider "Move": `,
		`replaced OnProvider "Replace": `,
		`runs OnProvider "": `,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if p := n.Plan; n.Awaited != 1 || p.Recreate != 2 || p.Move != 1 || p.Replace != 1 || p.Stay != 1 || p.AgainSeconds != 1.5 {
		t.Errorf("%d pods are awaited, plan %+v", n.Awaited, p)
	}
}

// TestBounds explains a large namespace on many providers, with the longest names: those that wait are not lost among those that run.
func TestBounds(t *testing.T) {
	const pods, providers = 10_000, 1000
	long := func(i int) string { return fmt.Sprintf("%0253d", i) }
	var s placement.Snapshot
	for i := range providers {
		s.Providers = append(s.Providers, placement.Provider{ID: cluster.ID(long(i)), Room: cores("1")})
		s.Selected = append(s.Selected, cluster.ID(long(i)))
	}
	for i := range pods {
		s.Copies = append(s.Copies, placement.Copy{
			Pod: long(i), Workload: strings.Repeat("x", 5000), Spot: placement.OnProvider, Provider: s.Selected[0], Requests: cores("1"),
		})
	}
	s.Copies[pods-1].Spot, s.Copies[pods-1].Provider = placement.Nowhere, ""
	n := Of(s, placement.Plan{Select: s.Selected, Place: s.Selected}, 0)
	if n.Pods.Count != pods || len(n.Pods.Items) != MaxItems || n.Pods.Items[0].Name != long(pods-1) || n.Providers.Count != providers ||
		len(n.Providers.Items) != MaxItems {
		t.Errorf("%d of %d pods, %d of %d providers; first %+v", len(n.Pods.Items), n.Pods.Count, len(n.Providers.Items), n.Providers.Count,
			n.Pods.Items[0])
	}
	answer, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if most := 1 << 20; len(answer) > most {
		t.Errorf("the explanation has %d bytes, want %d at most", len(answer), most)
	}
	if empty, err := json.Marshal(Of(placement.Snapshot{}, placement.Plan{}, 0)); err != nil || strings.Contains(string(empty), "null") {
		t.Errorf("nothing is %s, %v", empty, err)
	}
}
