// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// named is what Liqo calls a cluster.
func named(id, name string) client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: liqo.IdentityName},
		Data:       map[string]string{"CLUSTER_ID": id, "CLUSTER_NAME": name},
	}
}

// TestTarget has each command that changes something say first which cluster that is, also if it only tries, or refuses.
func TestTarget(t *testing.T) {
	const remoteIPAM = "--kubelet-extra-args=--remote-ipam=server=liqo-network-manager."
	of := func(broker cluster.Identity) string {
		return remoteIPAM + v09.TwinNameOfLiqo(broker) + ".svc.cluster.local"
	}
	milan := cluster.Identity{ID: "11111111-aaaa", Name: "milan"}
	connector := deployed("liqo-broker-connector", "liqo-broker-connector", "connector:v1")
	liqo := func(args ...string) client.Object {
		return deployed("liqo", "liqo-controller-manager", "liqo/controller-manager:v0.9.4", append(args, "--kubelet-image="+ofOurs)...)
	}
	type world = []client.Object
	rome := named("33333333-dddd", "rome")
	for name, tc := range map[string]struct {
		objects world
		flag    string
		want    string
	}{
		"Stock":   {world{liqo(), rome}, " --context=kind-rome", `On cluster rome (33333333-dddd), by context "kind-rome": Liqo alone`},
		"Unnamed": {world{liqo()}, "", "On this cluster: Liqo alone"},
		"Forged":  {world{liqo(), named("33333333-dddd", "rome\x1b[31m")}, "", "On cluster rome?[31m (33333333-dddd): Liqo alone"},
		"Consumer": {
			world{liqo(of(milan)), rome}, "", "On cluster rome (33333333-dddd): consumer of milan (11111111-aaaa)",
		},
		"All": {
			world{liqo(of(milan), remoteIPAM+"gone.svc:6001"), rome, connector, daemon(1, 1)}, "",
			"On cluster rome (33333333-dddd): broker and consumer of milan (11111111-aaaa), 1 that it does not peer with and trader",
		},
	} {
		for _, command := range []string{"install", "upgrade", "uninstall", "prepare", "unprepare", "guard", "unguard"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				var w writes
				out, _, err := w.counting(t, tc.objects...).run(t, command+" --dry-run=client"+tc.flag)
				if first, _, _ := strings.Cut(out, "\n"); first != tc.want {
					t.Errorf("it begins with %q, want %q: %v", first, tc.want, err)
				}
			})
		}
		// The others say it beside what they print.
		for command, change := range changes {
			if !strings.Contains(change.line, " ") || command == "join" {
				continue // It says so above its steps.
			}
			t.Run(name+"/"+command, func(t *testing.T) {
				var w writes
				out, errOut, err := w.counting(t, tc.objects...).run(t, change.line+" --dry-run=client"+tc.flag)
				first, _, _ := strings.Cut(errOut, "\n")
				refused := command == "test" && !strings.Contains(tc.want, "consumer of") // It is for consumers.
				if first != tc.want || strings.Contains(out, "On ") || (err != nil) != refused {
					t.Errorf("it begins with %q, want %q: %q, %v", first, tc.want, out, err)
				}
			})
		}
	}
}

// TestTargetUnseen changes clusters of which the user may not see everything: what can be seen is said, and the command does what it is
// for.
func TestTargetUnseen(t *testing.T) {
	installation := []client.Object{deployed("liqo", "liqo-controller-manager", "liqo/controller-manager:v0.9.4"), named("3-d", "rome")}
	for name, tc := range map[string]struct {
		hides func(client.Object) bool
		want  string
	}{
		"Roles": {
			func(o client.Object) bool { _, is := o.(*appsv1.Deployment); return is }, `On cluster rome (3-d), by context "kind-rome"`,
		},
		"All": {func(o client.Object) bool { return o.GetNamespace() == "liqo" }, `On this cluster, by context "kind-rome"`},
	} {
		c := &cli{client: interceptor.NewClient(newFake(t, append(federation(), installation...)...), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				o.SetNamespace(key.Namespace)
				if tc.hides(o) {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, key.Name, errors.New("no role"))
				}
				return c.Get(ctx, key, o, options...)
			},
		})}
		out, errOut, err := c.run(t, "cordon milan --context=kind-rome")
		if first, _, _ := strings.Cut(errOut, "\n"); first != tc.want || out != "provider milan (11111111-aaaa) cordoned\n" || err != nil {
			t.Errorf("%s: it begins with %q, want %q: %q, %v", name, first, tc.want, out, err)
		}
	}
}

// TestExport has each command that can write files in the place of changes do so: it says where they are, and writes to no cluster.
func TestExport(t *testing.T) {
	for _, command := range []string{"install", "prepare", "guard"} {
		var w writes
		at := w.counting(t)
		folder := filepath.Join(t.TempDir(), "files")
		out, _, err := at.run(t, command+" --export "+folder)
		if want := "Nothing was changed. " + folder + " has the files: https://"; err != nil || !strings.Contains(out, want) || w.kept > 0 {
			t.Errorf("%s: %d writes, %v\n%s", command, w.kept, err, out)
		}
		if text, err := os.ReadFile(filepath.Join(folder, "liqo/kustomization.yaml")); err != nil || len(text) == 0 {
			t.Errorf("%s: %d bytes of the component: %v", command, len(text), err)
		}
		if _, _, err := at.run(t, command+" --dry-run --export "+folder+"2"); err == nil || !strings.Contains(err.Error(), "beside a dry run") {
			t.Errorf("%s tries and exports: %v", command, err)
		}
	}
}
