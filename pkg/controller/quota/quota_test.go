// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

func TestReconcile(t *testing.T) {
	bounds, tenants := Bounds{"count/configmaps": 5}, Bounds{"count/configmaps": 3}
	twin := liqotest.TwinNamespace("web-consumer", cluster.Identity{ID: "id-c", Name: "consumer"})
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: twin.Name}}
	tenant, nobodys := other.DeepCopy(), other.DeepCopy()
	tenant.Labels = map[string]string{liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: "c"}
	nobodys.Labels = map[string]string{liqo.LabelTenantNamespace: "true"}
	ending := tenant.DeepCopy()
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Now()), []string{"brokering.liqo.io/test"}
	before := Bounds{"count/configmaps": 500}.Quota(twin.Name)
	cases := map[string]struct {
		reason  string
		objects []client.Object
		bound   int64 // Zero for none.
		writes  int
	}{
		"New":     {"A twin namespace gets a quota.", []client.Object{twin}, 5, 1},
		"Changed": {"Other bounds replace those of before.", []client.Object{twin, before}, 5, 1},
		"Same":    {"The same ones are not written again.", []client.Object{twin, bounds.Quota(twin.Name)}, 5, 0},
		"Tenant":  {"The tenant namespace of a peer has its own.", []client.Object{tenant}, 3, 1},
		"Nobodys": {"That of nobody has none.", []client.Object{nobodys}, 0, 0},
		"Ending":  {"Nor one that goes.", []client.Object{ending}, 0, 0},
		"Other":   {"What is no consumer's has none.", []client.Object{other}, 0, 0},
		"Gone":    {"Nor what is gone.", nil, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			writes := 0
			c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(tc.objects...).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					writes++
					return c.Create(ctx, o, opts...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					writes++
					return c.Patch(ctx, o, p, opts...)
				},
			}).Build()
			for range 2 {
				if _, err := New(Config{Client: c, Bounds: bounds, Tenants: tenants}).Reconcile(t.Context(),
					ctrl.Request{NamespacedName: client.ObjectKey{Name: twin.Name}}); err != nil {
					t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
				}
			}
			var quota corev1.ResourceQuota
			err := c.Get(t.Context(), client.ObjectKey{Namespace: twin.Name, Name: Name}, &quota)
			if apierrors.IsNotFound(err) != (tc.bound == 0) {
				t.Fatalf("%s\nGet(): %v", tc.reason, err)
			}
			hard := quota.Spec.Hard["count/configmaps"]
			if hard.Value() != tc.bound || writes != tc.writes {
				t.Errorf("%s\nbound %d after %d writes, want %d after %d", tc.reason, hard.Value(), writes, tc.bound, tc.writes)
			}
		})
	}
}

// mayCreate returns what of Liqo's files lets a peer create, by the name in a ResourceQuota.
func mayCreate(t *testing.T, module, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module, "deployments/liqo/files", file))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(text, &role); err != nil {
		t.Fatal(err)
	}
	may := map[string]bool{}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			// Nobody counts events, which end by themselves; what is done with a pod is no object.
			if slices.Contains(rule.Verbs, "create") && resource != "events" && !strings.Contains(resource, "/") {
				may["count/"+strings.TrimSuffix(resource+"."+rule.APIGroups[0], ".")] = true
			}
		}
	}
	return may
}

// bounded returns which resources have bounds.
func bounded(bounds Bounds) map[string]bool {
	has := map[string]bool{}
	for name, bound := range bounds {
		if strings.HasPrefix(name, "count/") {
			has[name] = bound > 0
		}
	}
	return has
}

// TestDefaultBounds compares the bounds with what Liqo lets a consumer create in a twin namespace.
func TestDefaultBounds(t *testing.T) {
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/liqotech/liqo").Output()
	if err != nil {
		t.Fatalf("find what Liqo lets a consumer do: %v", err)
	}
	want := mayCreate(t, strings.TrimSpace(string(module)), "liqo-virtual-kubelet-remote-ClusterRole.yaml")
	if diff := cmp.Diff(want, bounded(DefaultBounds(v09.Line{}))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for name, bound := range DefaultBounds(v09.Line{}) {
		if !strings.HasPrefix(name, "count/") && bound != 0 { // What a Service takes besides.
			t.Errorf("%s is %d, not none", name, bound)
		}
	}
}

// TestTenantBounds holds that what a broker looks at has room, and that not much more has.
func TestTenantBounds(t *testing.T) {
	want := map[string]bool{
		"count/resourceslices.authentication.liqo.io": true, "count/renews.authentication.liqo.io": true,
		"count/namespacemaps.offloading.liqo.io": true,
	}
	if diff := cmp.Diff(want, bounded(TenantBounds())); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := TenantBounds()["count/resourceslices.authentication.liqo.io"]; n <= grant.MaxRequests || n > 2*grant.MaxRequests {
		t.Errorf("%d ResourceSlices may be there, and %d are looked at", n, grant.MaxRequests)
	}
}

// TestBoundsOfLines holds that with each line the same is bounded, as that line calls it.
func TestBoundsOfLines(t *testing.T) {
	want := Bounds{}
	for name, bound := range DefaultBounds(v09.Line{}) {
		want[strings.Replace(name, ".virtualkubelet.liqo.io", ".offloading.liqo.io", 1)] = bound
	}
	got := DefaultBounds(v1.Line{})
	if diff := cmp.Diff(want, got); diff != "" || got["count/shadowpods.offloading.liqo.io"] == 0 {
		t.Errorf("with Liqo 1.x: -want +got\n%s", diff)
	}
}

// TestWith replaces one bound, and leaves the others.
func TestWith(t *testing.T) {
	const secrets = "count/secrets"
	all := DefaultBounds(v09.Line{}).With(map[string]int64{secrets: 7, "count/events": 9})
	defaults := DefaultBounds(v09.Line{})
	if len(all) != len(defaults)+1 || all[secrets] != 7 || all["count/configmaps"] != defaults["count/configmaps"] {
		t.Errorf("With(): %s", all)
	}
	if DefaultBounds(v09.Line{})[secrets] == 7 {
		t.Error("the defaults have changed")
	}
}

// TestDigest tells bounds apart.
func TestDigest(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range []Bounds{nil, DefaultBounds(v09.Line{}), {"count/configmaps": 1}, {"count/configmaps": 2}, {"count/secrets": 1}} {
		digest := b.Quota("n").Annotations[annotationDigest]
		if seen[digest] {
			t.Errorf("%v has the digest of other bounds", b)
		}
		seen[digest] = true
	}
}
