// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// listing returns a Configuration that leads to a peer, in a tenant namespace, with its own network and others behind it. Liqo has decided
// about all of them, and the second one is seen under another prefix.
func listing(tenant, peer string) *api.Configuration {
	c := configuration(
		api.CIDRs{Pod: []string{"10.201.0.0/16", "10.69.0.0/16", "10.66.0.0/16"}},
		&api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"10.201.0.0/16", "10.64.0.0/16", "10.66.0.0/16"}}},
	)
	c.Namespace, c.Name, c.Labels = tenantOf(tenant), peer, map[string]string{liqo.LabelRemoteClusterID: peer}
	c.Generation = 3
	c.Status.Conditions = []metav1.Condition{{Type: api.NetworkCIDRsConfigured, Status: metav1.ConditionTrue, ObservedGeneration: 3}}
	return c
}

// TestWays looks at what a consumer reaches through its brokers.
func TestWays(t *testing.T) {
	broker, other := recordOf("broker", api.RoleProvider), recordOf("other", api.RoleProvider)
	SayBroker(broker, true)
	recorded := listing("broker", "broker")
	recorded.Annotations = map[string]string{annotationViews: `{"views":["10.69.0.0/16"]}`}
	deciding := recorded.DeepCopy()
	deciding.Generation++
	granted := sliceIn(tenantOf("broker"), "broker", "own", "broker")
	granted.Status.NodeLabels = liqo.LabelViews(nil, map[string]netip.Prefix{"n1": netip.MustParsePrefix("10.66.0.0/16")})
	claimed := granted.DeepCopy()
	claimed.Spec.ConsumerClusterID = new("somebody")
	seen, listed := netip.MustParsePrefix("10.64.0.0/16"), netip.MustParsePrefix("10.66.0.0/16")
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		hidden  client.ObjectList
		want    map[cluster.ID][]netip.Prefix
	}{
		"NoBroker": {"Nobody is said to be one.", []client.Object{other, listing("other", "other")}, nil, map[cluster.ID][]netip.Prefix{}},
		"Recorded": {
			"The agent has listed a view.", []client.Object{broker, other, recorded, listing("other", "other")}, nil,
			map[cluster.ID][]netip.Prefix{"broker": {seen}},
		},
		"ByHand": {
			"People have listed what is granted.", []client.Object{broker, listing("broker", "broker"), granted}, nil,
			map[cluster.ID][]netip.Prefix{"broker": {listed}},
		},
		"OfOthers": {
			"It is granted to another cluster.", []client.Object{broker, listing("broker", "broker"), claimed}, nil,
			map[cluster.ID][]netip.Prefix{"broker": nil},
		},
		"NoNetwork": {"There is no network yet.", []client.Object{broker, granted}, nil, map[cluster.ID][]netip.Prefix{"broker": nil}},
		"Deciding": {
			"Liqo has not seen the list as it is.", []client.Object{broker, deciding, granted}, nil, map[cluster.ID][]netip.Prefix{"broker": nil},
		},
		"Forged": {
			"Another peer says in its tenant namespace what leads to the broker.",
			[]client.Object{broker, other, listing("other", "broker"), granted}, nil, map[cluster.ID][]netip.Prefix{"broker": nil},
		},
		"HiddenNetworks": {
			"Who asks may not see networks.", []client.Object{broker, recorded}, &api.ConfigurationList{},
			map[cluster.ID][]netip.Prefix{"broker": nil},
		},
		"HiddenGrants": {
			"Nor what is granted.", []client.Object{broker, recorded}, &api.ResourceSliceList{}, map[cluster.ID][]netip.Prefix{"broker": nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			var namespaces []client.Object
			for _, id := range []string{"broker", "other"} {
				namespaces = append(namespaces, new(tenantNamespace(tenantOf(id), id)))
			}
			built := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).WithObjects(namespaces...)
			c := built.WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if reflect.TypeOf(list) == reflect.TypeOf(tc.hidden) {
						return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no role"))
					}
					return c.List(ctx, list, options...)
				},
			}).Build()
			got, err := Line{}.Reader(c, "own").Ways(t.Context())
			same := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
			if diff := cmp.Diff(liqo.Ways{Through: tc.want}, got, same); err != nil || diff != "" {
				t.Errorf("%s %v\n-want +got\n%s", tc.reason, err, diff)
			}
		})
	}
}
