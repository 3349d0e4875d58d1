// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
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
			ingress, loadBalancer := shown(ClassesFor(tc.consumer, tc.provider, granted), withClasses(slice("", ""), tc.before, nil))
			if diff := cmp.Diff(tc.ingress, ingress) + cmp.Diff(tc.loadBalancer, loadBalancer); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}

	// A provider may list as many as it likes.
	many := classNames{"zzz": true}
	for i := range 3 * maxClasses {
		many[fmt.Sprintf("c%03d", i)] = false
	}
	if listed, _ := (Classes{ingress: many}).listed(&api.ResourceSliceStatus{}); len(listed) != maxClasses || listed[0].Default {
		t.Errorf("%d classes are listed: %+v", len(listed), listed)
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
