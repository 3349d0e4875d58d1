// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/install"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// fakeCluster1 is a cluster with Liqo 1.x of a version, where a transit closes what it has to.
func fakeCluster1(t *testing.T, version string, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.Line{}.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	manager := runs(liqoNamespace, "liqo-controller-manager", "liqo/controller-manager:"+version)
	closed := &api.FirewallConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: install.TransitName, Name: v1.TransitFirewall}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper(scheme)).WithObjects(objects...).
		WithObjects(manager, closed, node).Build(), interceptor.Funcs{
		Patch: apply,
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, is := o.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = true
				return nil
			}
			return c.Create(ctx, o, options...)
		},
	})
}

// runs is a Deployment all of whose pods are ready.
func runs(namespace, name, image string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "it", Image: image, Args: args}}
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas = 1, 1, 1, 1
	return d
}

// TestLiqo1 looks at clusters with Liqo 1.x: at what was installed, and at nothing of Liqo 0.9.
func TestLiqo1(t *testing.T) {
	milan := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	milan.Spec.ClusterID = "milan"
	v1.SayBroker(milan, true)
	for name, tc := range map[string]struct {
		version string
		objects []client.Object
		broker  bool // It is installed.
		roles   []string
		// says are parts of the things of which something is to be said.
		problems, notes []string
	}{
		"Stock":  {"v1.2.0", nil, false, []string{}, nil, []string{"are not looked at with Liqo 1.x"}},
		"Other":  {"v1.1.0", nil, false, []string{}, nil, []string{"and of 1.x v1.2.0 was tried", "are not looked at with Liqo 1.x"}},
		"Broker": {"v1.2.0", nil, true, []string{"broker"}, nil, []string{"are not looked at with Liqo 1.x"}},
		"Catalog": {
			"v1.2.0", []client.Object{runs(install.BrokerName, install.BrokerName, "x/liqo-broker:v0.0.9", "--with-catalog")}, false,
			[]string{"catalog"}, nil, []string{"The images have tag v0.0.9", "No replica of the daemon has ever led", "are not looked at"},
		},
		"Guarded": {
			"v1.2.0", []client.Object{runs(install.GuardName, install.GuardName, "x/liqo-broker:v0.1.0")}, false, []string{"guarded"},
			[]string{"run the guard", "add the rules that hold without the guard", "There is no Service liqo-broker-guard"},
			[]string{"are not looked at"},
		},
		"Consumer": {
			"v1.2.0", []client.Object{milan}, false, []string{"consumer"}, []string{
				"run the agent", "wait for this cluster's credentials at milan",
			}, []string{"are not looked at"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster1(t, tc.version, tc.objects...)
			if tc.broker {
				broker(t, c)
			}
			d, err := Run(t.Context(), Config{Client: c, Now: now, Plugin: "v0.1.0"})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(d.Roles, tc.roles) || d.Healthy != (len(tc.problems) == 0) || d.Liqo != tc.version {
				t.Errorf("it is %q with Liqo %s, well: %t, want %q\n%s", d.Roles, d.Liqo, d.Healthy, tc.roles, d)
			}
			for state, want := range map[State][]string{Problem: tc.problems, Note: tc.notes} {
				var got []Check
				for _, check := range d.Checks {
					if check.State == state {
						got = append(got, check)
					}
				}
				missing := slices.ContainsFunc(want, func(part string) bool {
					return !slices.ContainsFunc(got, func(c Check) bool { return strings.Contains(c.What, part) })
				})
				if missing || len(got) != len(want) {
					t.Errorf("%s: %v, want %q", state, got, want)
				}
			}
		})
	}
}
