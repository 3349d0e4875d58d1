// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// TestDrainWaits drains a provider of which a broker says something else each time that somebody looks.
func TestDrainWaits(t *testing.T) {
	type look = func(*v1alpha1.Provider) error
	says := func(reason, message string) look {
		return func(p *v1alpha1.Provider) error {
			p.Generation = 2
			draining := condition(v1alpha1.ConditionDraining, metav1.ConditionTrue, reason, message)
			draining.ObservedGeneration = 2
			p.Status.Conditions = []metav1.Condition{draining}
			return nil
		}
	}
	unseen := func(p *v1alpha1.Provider) error {
		err := says(v1alpha1.ReasonDrained, "of the time before")(p)
		p.Generation = 3
		return err
	}
	three := says(v1alpha1.ReasonPodsLeaving, "3 pods are left on the provider")
	held := says(v1alpha1.ReasonPodsHeld, "1 pod is left on the provider; shop/web-1 stays:\x1b no other provider has room for it")
	none := says(v1alpha1.ReasonDrained, "No pod is left on the provider")
	const left3 = "3 pods are left on the provider"
	const left1 = "1 pod is left on the provider; shop/web-1 stays:? no other provider has room for it"
	const wanted, next = "provider milan (11111111-aaaa) to be drained\n", "enable 11111111-aaaa\n"
	for name, tc := range map[string]struct {
		reason, line string
		// looks are what is seen, of which the last one stays.
		looks    []look
		out, err string
		prints   []string
		exitCode int
	}{
		"Drained": {
			reason: "The wait ends when no pod is left.", line: "drain milan", looks: []look{unseen, three, three, held, none},
			out: wanted + "provider milan (11111111-aaaa) drained\n", prints: []string{left3, left1},
		},
		"Empty": {
			reason: "And at once if none was there.", line: "drain milan --timeout 1s", looks: []look{none},
			out: wanted + "provider milan (11111111-aaaa) drained\n",
		},
		"Held": {
			reason: "Or when there is no time left.", line: "drain milan --timeout 1m", looks: []look{three, held},
			out: wanted, err: "provider milan (11111111-aaaa) after 1m0s: it is not drained yet: 1 pod is left on the provider; shop/web-1 stays",
			prints:   []string{left3, left1},
			exitCode: exitUnhealthy,
		},
		"Unseen": {
			reason: "A broker that does not run does nothing.", line: "drain milan --timeout 10s", looks: []look{unseen},
			out: wanted, err: "not drained yet: The broker has not seen the change yet", prints: []string{"The broker has not seen the change yet"},
			exitCode: exitUnhealthy,
		},
		"Taken back": {
			reason: "Somebody else may want it.", line: "drain milan", looks: []look{three, func(p *v1alpha1.Provider) error {
				p.Spec.Scheduling = v1alpha1.SchedulingActive
				return nil
			}},
			out: wanted, err: "provider milan (11111111-aaaa) is not to be drained any more: somebody made it Active",
			prints: []string{left3}, exitCode: program.ExitFailure,
		},
		"Fault": {
			reason: "A fault ends it.", line: "drain milan", looks: []look{func(*v1alpha1.Provider) error { return errors.New("boom") }},
			out: wanted, err: "get provider 11111111-aaaa: boom", exitCode: program.ExitFailure,
		},
		"Told not to": {
			reason: "Nobody has to wait.", line: "drain milan --wait=false", looks: []look{three}, out: wanted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := -1 // The first one is before the change.
				c := &cli{client: interceptor.NewClient(newFake(t, federation()...), interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
						err := c.Get(ctx, key, o, options...)
						p, is := o.(*v1alpha1.Provider)
						if !is || err != nil {
							return err
						}
						if looks++; looks == 0 {
							return nil
						}
						return tc.looks[min(looks, len(tc.looks))-1](p)
					},
				})}
				out, errOut, err := c.run(t, tc.line)
				if out != tc.out || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\n%q, %v, want %q, %s", tc.reason, out, err, tc.out, tc.err)
				}
				if err != nil && program.ExitCode(err) != tc.exitCode {
					t.Errorf("%s\nexit code %d, want %d", tc.reason, program.ExitCode(err), tc.exitCode)
				}
				_, printed, _ := strings.Cut(errOut, next)
				if want := strings.Join(append(tc.prints, ""), "\n"); printed != want {
					t.Errorf("%s\nprints %q, want %q", tc.reason, printed, want)
				}
			})
		})
	}
}

// draining is a consumer with pods on milan, which turin has some room for: a pair, one alone, one that is too large, and one that is of
// nobody.
func draining(t *testing.T) []client.Object {
	t.Helper()
	rome, milan := cluster.Identity{ID: "33333333-dddd", Name: "rome"}, cluster.Identity{ID: "11111111-aaaa", Name: "milan"}
	turin := cluster.Identity{ID: "22222222-bbbb", Name: "turin"}
	ns := liqotest.TwinNamespace("shop-rome-abc", rome)
	ns.Annotations["liqo.io/original-name"] = "shop"
	offloading := liqotest.Offloading(ns.Name, milan.ID, turin.ID)
	liqotest.PutInForce(ns, offloading, milan, turin)
	node := liqotest.VirtualNode(milan, true)
	identity := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: liqo.DefaultNamespace, Name: liqo.IdentityName}}
	identity.Data = map[string]string{liqo.IdentityKey: "55555555-9999", "CLUSTER_NAME": "broker"}
	all := append(federation(), ns, offloading, node, liqotest.VirtualNode(turin, true), identity, pod("nobodys", "y", node.Name, "10.1.0.9"))
	for i := range all {
		if p, is := all[i].(*v1alpha1.Provider); is && p.Name == string(turin.ID) {
			p.Status.LargestPod = resources("2", "4Gi")
		}
	}
	for name, cores := range map[string]string{"web-1": "500m", "web-2": "500m", "db-1": "100m", "large-1": "3", "large-2": "3"} {
		app, _, _ := strings.Cut(name, "-")
		shadow := liqotest.ShadowPod(ns.Name, name, map[string]string{"app": app + "\u202e"})
		p := pod(ns.Name, name, node.Name, "10.1.0.7")
		p.UID = types.UID(name)
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cores),
		}}}}
		all = append(all, shadow, p)
	}
	return all
}

// TestDrainPreview looks at what would move before anything does.
func TestDrainPreview(t *testing.T) {
	for name, line := range map[string]string{
		"drain_preview.txt": "drain milan --dry-run", "drain_preview_client.txt": "drain milan --dry-run=client",
		"drain_preview.yaml": "drain milan --dry-run -o yaml", "drain_preview_none.txt": "drain turin --dry-run",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCLI(t, draining(t)...)
			out, errOut, err := c.run(t, line)
			if err != nil || strings.Contains(errOut, "cannot be said") {
				t.Fatalf("%v; %s", err, errOut)
			}
			golden.Check(t, name, out)
			var p v1alpha1.Provider
			if err := c.client.Get(t.Context(), client.ObjectKey{Name: "11111111-aaaa"}, &p); err != nil || p.Spec.Scheduling != "" {
				t.Errorf("the provider is %q (%v)", p.Spec.Scheduling, err)
			}
		})
	}
	_, _, err := newCLI(t, draining(t)...).run(t, "drain milan -o json")
	if program.ExitCode(err) != program.ExitUsage {
		t.Errorf("with an output and without a dry run: %v", err)
	}

	// Who may not see what is there learns that, and is not kept from trying.
	blind := &cli{client: interceptor.NewClient(newFake(t, draining(t)...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.NodeList); is {
				return errors.New("you may not")
			}
			return c.List(ctx, list, options...)
		},
	})}
	out, errOut, err := blind.run(t, "drain milan --dry-run")
	if err != nil || !strings.Contains(out, "server dry run") || !strings.Contains(errOut, "cannot be said") {
		t.Errorf("%q, %q, %v", out, errOut, err)
	}
	if out, _, err := blind.run(t, "drain milan --dry-run -o json"); err == nil || out != "" {
		t.Errorf("for programs: %q, %v", out, err)
	}
}
