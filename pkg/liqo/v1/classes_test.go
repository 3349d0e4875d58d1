// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// withClasses lists classes in a ResourceSlice: those that end in ";default" as the default.
func withClasses(s *api.ResourceSlice, ingress, loadBalancer []string) *api.ResourceSlice {
	for _, text := range ingress {
		name, _, isDefault := strings.Cut(text, ";")
		s.Status.IngressClasses = append(s.Status.IngressClasses, api.IngressClass{Name: name, Default: isDefault})
	}
	for _, text := range loadBalancer {
		name, _, isDefault := strings.Cut(text, ";")
		s.Status.LoadBalancerClasses = append(s.Status.LoadBalancerClasses, api.LoadBalancerClass{Name: name, Default: isDefault})
	}
	return s
}

// shown returns classes as withClasses has them.
func shown(c Classes, before *api.ResourceSlice) (ingress, loadBalancer []string) {
	of, balancers := c.listed(&before.Status)
	mark := map[bool]string{true: ";default"}
	for _, class := range of {
		ingress = append(ingress, class.Name+mark[class.Default])
	}
	for _, class := range balancers {
		loadBalancer = append(loadBalancer, class.Name+mark[class.Default])
	}
	return ingress, loadBalancer
}

func TestClasses(t *testing.T) {
	given := func(provider, name string, ingress, loadBalancer []string) *api.ResourceSlice {
		return withClasses(sliceIn(tenantOf(provider), name, "own", provider), ingress, loadBalancer)
	}
	pending := given("a", "pending", []string{"pending"}, nil)
	pending.Status.Conditions = pending.Status.Conditions[:1]
	leaving := given("a", "leaving", []string{"leaving"}, nil)
	leaving.DeletionTimestamp, leaving.Finalizers = new(then()), []string{"brokering.liqo.io/test"}
	forged := given("a", "forged", []string{"forged"}, nil)
	forged.Spec.ProviderClusterID = new("b")
	asked := withClasses(sliceIn(tenantOf("c"), "asked", "c", "own"), []string{"asked"}, nil)
	stray := given("a", "stray", []string{"stray"}, nil)
	stray.Namespace = "somewhere"
	objects := []client.Object{
		given("a", "first", []string{"z;default", "nginx", "No Class"}, []string{"metallb", "a b"}),
		given("a", "second", []string{"nginx;default"}, nil),
		given("b", "first", []string{"haproxy", "m;default"}, []string{"example.com/lb;default"}),
		given("c", "own", []string{"of-c"}, nil),
		pending, leaving, forged, asked, stray,
	}
	for _, id := range []string{"a", "b", "c"} {
		objects = append(objects, recordOf(id, api.RoleProvider), new(tenantNamespace(tenantOf(id), id)), identityIn(tenantOf(id), id))
	}
	granted, err := GrantedClasses(t.Context(), sliceClient(t, interceptor.Funcs{}, objects...), "own")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason                string
		consumer, provider    cluster.ID
		before                []string
		ingress, loadBalancer []string
	}{
		"All": {
			"There are those of all but the consumer, and one default.", "c", "", nil,
			[]string{"haproxy", "m;default", "nginx", "z"}, []string{"example.com/lb;default", "metallb"},
		},
		"Another": {
			"Another consumer may use those of c.", "d", "", nil,
			[]string{"haproxy", "m;default", "nginx", "of-c", "z"}, []string{"example.com/lb;default", "metallb"},
		},
		"Stays": {
			"The default stays what it was.", "c", "", []string{"nginx;default"},
			[]string{"haproxy", "m", "nginx;default", "z"}, []string{"example.com/lb;default", "metallb"},
		},
		"NoMore": {
			"It does not if it is none.", "c", "", []string{"haproxy;default"},
			[]string{"haproxy", "m;default", "nginx", "z"}, []string{"example.com/lb;default", "metallb"},
		},
		"One":  {"A node of one provider has the classes of that.", "c", "a", nil, []string{"nginx;default", "z"}, []string{"metallb"}},
		"None": {"Nobody knows of one that is gone.", "c", "gone", nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ingress, loadBalancer := shown(ClassesFor(tc.consumer, granted).on(tc.provider), withClasses(slice("", ""), tc.before, nil))
			if diff := cmp.Diff(tc.ingress, ingress) + cmp.Diff(tc.loadBalancer, loadBalancer); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClassesInTurns has providers that list more classes than there is room for: each has its share, in whatever order they are read.
func TestClassesInTurns(t *testing.T) {
	many := func(prefix string, n int) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%s-%05d", prefix, i)
		}
		return names
	}
	given := func(provider, name string, ingress ...string) *api.ResourceSlice {
		return withClasses(sliceIn(tenantOf(provider), name, "own", provider), ingress, ingress)
	}
	cases := map[string]struct {
		reason string
		slices []*api.ResourceSlice
		want   []string
	}{
		"Greedy": {
			"One that lists very many leaves others what they list.",
			[]*api.ResourceSlice{given("a", "x", many("a", 3*maxClasses)...), given("b", "x", "nginx;default"), given("c", "x", "y", "z")},
			append(many("a", maxClasses-3), "nginx;default", "y", "z"),
		},
		"Many": {
			"One with several ResourceSlices has no more for that.",
			[]*api.ResourceSlice{
				given("a", "x", many("a1", maxClasses)...), given("a", "y", many("a2", maxClasses)...), given("b", "x", many("b", maxClasses)...),
			},
			slices.Concat(many("a1", maxClasses/2), many("b", maxClasses/2)),
		},
		"Shared": {
			"What several have has one place.", []*api.ResourceSlice{
				given("a", "x", append(many("a", maxClasses-1), "0")...), given("b", "x", append(many("b", maxClasses-1), "0")...),
			},
			slices.Concat([]string{"0"}, many("a", 32), many("b", 31)),
		},
		"Default": {
			"What a provider wants most comes first.", []*api.ResourceSlice{
				given("a", "x", many("a", maxClasses)...), given("b", "x", append([]string{"z;default"}, many("b", maxClasses)...)...),
			},
			slices.Concat(many("a", 32), many("b", 31), []string{"z;default"}),
		},
		"Beyond": {
			"What comes after the first ones is not looked at.",
			[]*api.ResourceSlice{given("a", "x", append(many("No Class", maxClasses), "nginx;default")...)}, nil,
		},
		"Twice": {"What may be the default at one may be it.", []*api.ResourceSlice{
			given("a", "x", "nginx"), given("b", "x", "nginx;default"), given("c", "x", "nginx"),
		}, []string{"nginx;default"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, id := range []string{"a", "b", "c"} {
				objects = append(objects, recordOf(id, api.RoleProvider), new(tenantNamespace(tenantOf(id), id)), identityIn(tenantOf(id), id))
			}
			for _, s := range tc.slices {
				objects = append(objects, s)
			}
			backwards := interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					err := c.List(ctx, list, options...)
					if all, is := list.(*api.ResourceSliceList); is {
						slices.Reverse(all.Items)
					}
					return err
				},
			}
			for _, funcs := range []interceptor.Funcs{{}, backwards} {
				granted, err := GrantedClasses(t.Context(), sliceClient(t, funcs, objects...), "own")
				if err != nil {
					t.Fatal(err)
				}
				for id, classes := range granted {
					if len(classes.ingress) > maxClasses || len(classes.loadBalancer) > maxClasses {
						t.Errorf("%s\n%s has %d and %d classes", tc.reason, id, len(classes.ingress), len(classes.loadBalancer))
					}
				}
				for range 16 { // Maps have no order.
					ingress, loadBalancer := shown(ClassesFor("d", granted).on(""), slice("", ""))
					if diff := cmp.Diff(tc.want, ingress) + cmp.Diff(tc.want, loadBalancer); diff != "" {
						t.Fatalf("%s\n-want +got\n%s", tc.reason, diff)
					}
				}
			}
		})
	}
}

func TestGrantedClassesFails(t *testing.T) {
	broken := errors.New("broken")
	objects := []client.Object{withClasses(sliceIn(tenantOf("a"), "x", "own", "a"), []string{"nginx"}, nil)}
	for name, funcs := range map[string]interceptor.Funcs{
		"List": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken }},
		"Get": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		}},
	} {
		if _, err := GrantedClasses(t.Context(), sliceClient(t, funcs, objects...), "own"); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClassesChanged(t *testing.T) {
	bought := withClasses(slice(api.SliceAccepted, api.SliceAccepted), []string{"nginx"}, []string{"metallb"})
	without := slice(api.SliceAccepted, api.SliceAccepted)
	for name, tc := range map[string]struct {
		before *api.ResourceSlice
		by     func(*api.ResourceSlice)
		want   bool
	}{
		"Same":         {bought, func(s *api.ResourceSlice) { s.Status.Resources = nil }, false},
		"Ingress":      {bought, func(s *api.ResourceSlice) { s.Status.IngressClasses[0].Default = true }, true},
		"LoadBalancer": {bought, func(s *api.ResourceSlice) { s.Status.LoadBalancerClasses = nil }, true},
		"Denied":       {bought, func(s *api.ResourceSlice) { s.Status.Conditions[1].Status = api.SliceDenied }, true},
		"Claim":        {bought, func(s *api.ResourceSlice) { s.Spec.ProviderClusterID = new("other") }, true},
		"None":         {without, func(s *api.ResourceSlice) { s.Spec.ProviderClusterID = new("other") }, false},
		"New":          {without, func(s *api.ResourceSlice) { withClasses(s, []string{"nginx"}, nil) }, true},
		"Asked":        {fromConsumer(without.DeepCopy()), func(s *api.ResourceSlice) { withClasses(s, []string{"nginx"}, nil) }, false},
	} {
		after := tc.before.DeepCopy()
		tc.by(after)
		if got := ClassesChanged(tc.before, after); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// TestClassThatCounts has providers change what they list: the class that Liqo takes for the usual one is another one only if it has to be.
func TestClassThatCounts(t *testing.T) {
	cases := map[string]struct {
		reason, was string
		usual       bool // Whether that was the default.
		has         classNames
		want        string
	}{
		"First":    {"the first counts, where none is the default", "nginx", false, classNames{"nginx": false, "aaa": false}, "nginx"},
		"Withdrew": {"its provider says no more that it is the default", "nginx", true, classNames{"nginx": false, "aaa": false}, "nginx"},
		"Default":  {"a default counts for more", "nginx", false, classNames{"nginx": false, "zzz": true}, "zzz"},
		"Stays":    {"one default is as good as another", "nginx", true, classNames{"nginx": true, "aaa": true}, "nginx"},
		"Gone":     {"nobody has it any more", "nginx", true, classNames{"bbb": false, "aaa": false}, "aaa"},
		"New":      {"there was none", "", false, classNames{"bbb": false, "aaa": false}, "aaa"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var was api.ResourceSliceStatus
			if tc.was != "" {
				was.IngressClasses = []api.IngressClass{{Name: tc.was, Default: tc.usual}}
				was.LoadBalancerClasses = []api.LoadBalancerClass{{Name: tc.was, Default: tc.usual}}
			}
			ingress, loadBalancer := Classes{ingress: tc.has, loadBalancer: tc.has}.listed(&was)
			ofIngress := ingress[max(0, slices.IndexFunc(ingress, func(c api.IngressClass) bool { return c.Default }))]
			ofBalancer := loadBalancer[max(0, slices.IndexFunc(loadBalancer, func(c api.LoadBalancerClass) bool { return c.Default }))]
			if ofIngress.Name != tc.want || ofBalancer.Name != tc.want {
				t.Errorf("%s: %s and %s count, want %s", tc.reason, ofIngress.Name, ofBalancer.Name, tc.want)
			}
			if len(ingress) != len(tc.has) || len(loadBalancer) != len(tc.has) {
				t.Errorf("%s: %d and %d are listed, want %d", tc.reason, len(ingress), len(loadBalancer), len(tc.has))
			}
		})
	}
}

// TestClassesWait has a provider list other classes some time after a consumer was told of some: the consumer is told again in time, and of
// all else at once.
func TestClassesWait(t *testing.T) {
	accepted := func(s *api.ResourceSlice) { s.Status.Conditions[1].Status = api.SliceAccepted }
	cases := map[string]struct {
		reason string
		after  time.Duration
		was    func(*api.ResourceSlice)
		has    Classes
		told   string
		wait   time.Duration
	}{
		"First": {
			"It has no node yet.", time.Second,
			func(s *api.ResourceSlice) {
				s.Status.Conditions[1].Status, s.Status.IngressClasses = api.SliceDenied, nil
			},
			Classes{ingress: classNames{"new": false}}, "new", 0,
		},
		"Undecided": {
			"Nor has one of which nothing was decided.", time.Second,
			func(s *api.ResourceSlice) {
				s.Status.Conditions, s.Status.IngressClasses = s.Status.Conditions[:1], nil
			},
			Classes{ingress: classNames{"new": false}}, "new", 0,
		},
		"Soon":   {"Another class waits.", time.Minute, accepted, Classes{ingress: classNames{"new": false}}, "old", 9 * time.Minute},
		"Gone":   {"So does one that is gone.", 599 * time.Second, accepted, Classes{}, "old", time.Second},
		"Usual":  {"So does another default.", 0, accepted, Classes{ingress: classNames{"old": true}}, "old", 10 * time.Minute},
		"Due":    {"It has waited.", 10 * time.Minute, accepted, Classes{ingress: classNames{"new": false}}, "new", 0},
		"Later":  {"It may be long ago.", time.Hour, accepted, Classes{}, "", 0},
		"Future": {"Another clock has said when.", -time.Second, accepted, Classes{ingress: classNames{"new": false}}, "new", 0},
		"Same":   {"Nothing waits for nothing.", time.Minute, accepted, Classes{ingress: classNames{"old": false}}, "old", 0},
		"Balancer": {
			"Those of load balancers wait as well.", time.Minute, accepted,
			Classes{ingress: classNames{"old": false}, loadBalancer: classNames{"new": false}}, "old", 9 * time.Minute,
		},
	}
	amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := withClasses(fromConsumer(slice(api.SliceAccepted, api.SliceAccepted)), []string{"old"}, nil)
			s.Status.Conditions[1].LastTransitionTime = then()
			tc.was(s)
			at := then().Add(tc.after)
			got, wait := Answered(s, grant.Answer{Verdict: grant.Accepted, Granted: amount}, NodeClasses{all: tc.has}, at)
			if got == nil {
				t.Fatalf("%s\nthe amount is not told", tc.reason)
			}
			told, balancers := "", len(got.Status.LoadBalancerClasses)
			for _, class := range got.Status.IngressClasses {
				told += class.Name
			}
			if told != tc.told || balancers > 0 || wait != tc.wait {
				t.Errorf("%s\nit is told of %q, and of %d load balancers, and waits for %s, want %q and %s",
					tc.reason, told, balancers, wait, tc.told, tc.wait)
			}
			want := then()
			if tc.told != "old" {
				want = metav1.NewTime(at)
			}
			if since := got.Status.Conditions[1].LastTransitionTime; !since.Equal(&want) {
				t.Errorf("%s\nits classes are those of %s, want %s", tc.reason, since, want)
			}
		})
	}
}
