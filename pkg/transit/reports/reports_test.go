// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
	"github.com/capacitorset/liqo-broker/pkg/transit/reports"
)

func reconcile(t *testing.T, w *transittest.World, peer string) error {
	t.Helper()
	_, err := reports.New(reports.Config{Client: w, Own: transittest.Own}).
		Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: transittest.Tenant(peer)}})
	return err
}

// there returns what is there for the reports of a peer.
func there(t *testing.T, w *transittest.World, peer string) []client.Object {
	t.Helper()
	var all []client.Object
	for _, o := range []client.Object{&corev1.ConfigMap{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		switch err := w.Get(t.Context(), client.ObjectKey{Namespace: transittest.Tenant(peer), Name: report.Name}, o); {
		case apierrors.IsNotFound(err):
		case err != nil:
			t.Fatal(err)
		default:
			all = append(all, o)
		}
	}
	return all
}

func TestMade(t *testing.T) {
	w := transittest.New(t)
	if err := reconcile(t, w, "c"); err != nil {
		t.Fatal(err)
	}
	all := there(t, w, "c")
	if len(all) != 3 {
		t.Fatalf("%d of 3 objects are there", len(all))
	}
	if text, is := all[0].(*corev1.ConfigMap).Data[report.Key]; !is || text != "" {
		t.Errorf("the consumer is said to have reported %q (%t)", text, is)
	}
	owners := []metav1.OwnerReference{{
		APIVersion: "authentication.liqo.io/v1beta1", Kind: "Tenant", Name: "c", UID: transittest.Permit("c").UID,
	}}
	if diff := cmp.Diff(owners, all[0].GetOwnerReferences()); diff != "" {
		t.Errorf("it does not go with the peering: %s", diff)
	}
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"liqo-broker-report"},
		Verbs: []string{"get", "update"},
	}}
	if diff := cmp.Diff(rules, all[1].(*rbacv1.Role).Rules); diff != "" {
		t.Errorf("the consumer may do something else than to report: %s", diff)
	}
	b := all[2].(*rbacv1.RoleBinding)
	if !slices.Equal(b.Subjects, []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "c"}}) ||
		b.RoleRef != (rbacv1.RoleRef{Kind: "Role", APIGroup: "rbac.authorization.k8s.io", Name: "liqo-broker-report"}) {
		t.Errorf("%v may do what %v says", b.Subjects, b.RoleRef)
	}
	if of := b.Labels["liqo.io/remote-cluster-id"]; of != "c" {
		t.Errorf("the rights are said to be those of %q, so that the guard lets the consumer have no certificate", of)
	}
	w.Writes = 0
	if err := reconcile(t, w, "c"); err != nil || w.Writes != 0 {
		t.Errorf("%d writes without a reason, %v", w.Writes, err)
	}
}

func TestNobody(t *testing.T) {
	cases := map[string]struct {
		reason string
		peer   string
		change func(t *testing.T, w *transittest.World)
	}{
		"Provider": {reason: "Who only provides reports nothing.", peer: "p"},
		"Stranger": {reason: "Nor who is not known.", peer: "x"},
		"Drained": {reason: "Nor who has to go.", peer: "c", change: func(t *testing.T, w *transittest.World) {
			t.Helper()
			tenant := &api.Tenant{}
			if err := w.Get(t.Context(), client.ObjectKey{Namespace: transittest.Tenant("c"), Name: "c"}, tenant); err != nil {
				t.Fatal(err)
			}
			tenant.Spec.TenantCondition = api.TenantDrained
			if err := w.Update(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
		}},
		"Ending": {reason: "Nothing is made in a namespace that ends.", peer: "c", change: func(t *testing.T, w *transittest.World) {
			t.Helper()
			ns := &corev1.Namespace{}
			if err := w.Get(t.Context(), client.ObjectKey{Name: transittest.Tenant("c")}, ns); err != nil {
				t.Fatal(err)
			}
			ns.Finalizers = []string{"example.com/keeps"}
			if err := errors.Join(w.Update(t.Context(), ns), w.Delete(t.Context(), ns)); err != nil {
				t.Fatal(err)
			}
		}},
		"Twin": {reason: "A consumer's pods are not where it reports.", peer: "c", change: func(t *testing.T, w *transittest.World) {
			t.Helper()
			ns := &corev1.Namespace{}
			if err := w.Get(t.Context(), client.ObjectKey{Name: transittest.Tenant("c")}, ns); err != nil {
				t.Fatal(err)
			}
			delete(ns.Labels, liqo.LabelTenantNamespace)
			if err := w.Update(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := transittest.New(t)
			if tc.change != nil {
				tc.change(t, w)
			}
			if err := reconcile(t, w, tc.peer); err != nil {
				t.Fatal(err)
			}
			if all := there(t, w, tc.peer); len(all) > 0 {
				t.Errorf("%s: %d objects", tc.reason, len(all))
			}
		})
	}
}

func TestHealed(t *testing.T) {
	cases := map[string]struct {
		reason string
		at     int
		change func(client.Object)
	}{
		"Rules": {"Nobody may do more.", 1, func(o client.Object) {
			o.(*rbacv1.Role).Rules[0].ResourceNames = nil
		}},
		"Subjects": {"Nobody else may.", 2, func(o client.Object) {
			o.(*rbacv1.RoleBinding).Subjects = []rbacv1.Subject{{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "c"}}
		}},
		"Whose": {"A user with rights that are not the cluster's gets no certificate.", 2, func(o client.Object) {
			delete(o.GetLabels(), "liqo.io/remote-cluster-id")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := transittest.New(t)
			if err := reconcile(t, w, "c"); err != nil {
				t.Fatal(err)
			}
			want := there(t, w, "c")[tc.at]
			changed, _ := want.DeepCopyObject().(client.Object)
			tc.change(changed)
			if err := w.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			if err := reconcile(t, w, "c"); err != nil {
				t.Fatal(err)
			}
			got := there(t, w, "c")[tc.at]
			got.SetResourceVersion(want.GetResourceVersion())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s", tc.reason, diff)
			}
		})
	}
}

// TestReportStays holds that what a consumer has reported is there after another look.
func TestReportStays(t *testing.T) {
	w := transittest.New(t)
	if err := reconcile(t, w, "c"); err != nil {
		t.Fatal(err)
	}
	told, _ := there(t, w, "c")[0].(*corev1.ConfigMap)
	told.Data = map[string]string{report.Key: "{}"}
	if err := w.Update(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	if err := reconcile(t, w, "c"); err != nil {
		t.Fatal(err)
	}
	if told, _ := there(t, w, "c")[0].(*corev1.ConfigMap); told.Data[report.Key] != "{}" {
		t.Error("what the consumer has told is gone")
	}
}

func TestOthers(t *testing.T) {
	in, ours := transittest.Tenant("c"), map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged}
	elsewhere := transittest.Made(&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{
		APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "admin",
	}}, in, report.Name, ours)
	before := transittest.Made(&corev1.ConfigMap{}, in, report.Name, ours)
	before.OwnerReferences = []metav1.OwnerReference{{APIVersion: "authentication.liqo.io/v1beta1", Kind: "Tenant", Name: "c", UID: "before"}}
	cases := map[string]struct {
		reason string
		there  client.Object
		left   int // Of the objects.
	}{
		"Before":    {"What is of a peering that has ended goes first.", before, 1},
		"Free":      {"What goes with no peering is to be deleted.", transittest.Made(&corev1.ConfigMap{}, in, report.Name, ours), 1},
		"ConfigMap": {"Nobody may write what somebody else keeps.", transittest.Made(&corev1.ConfigMap{}, in, report.Name, nil), 1},
		"Role": {
			"Nobody may do what somebody else says.",
			transittest.Made(&rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}}}}, in, report.Name, nil), 2,
		},
		"Binding": {"Who else may do it is somebody else's.", transittest.Made(&rbacv1.RoleBinding{}, in, report.Name, nil), 3},
		"RoleRef": {"What a binding refers to never changes.", elsewhere, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := transittest.New(t, tc.there)
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(tc.there), tc.there); err != nil {
				t.Fatal(err)
			}
			version := tc.there.GetResourceVersion()
			if err := reconcile(t, w, "c"); err != nil {
				t.Fatal(err)
			}
			if all := there(t, w, "c"); len(all) != tc.left {
				t.Errorf("%s %d objects, want %d", tc.reason, len(all), tc.left)
			}
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(tc.there), tc.there); err != nil || tc.there.GetResourceVersion() != version {
				t.Errorf("%s It was written: %v", tc.reason, err)
			}
		})
	}
}

// TestFails holds that what cannot be written is tried again, and that nobody gets a right to what is not there.
func TestFails(t *testing.T) {
	w := transittest.New(t)
	boom := errors.New("boom")
	w.Fail = func(o client.Object) error {
		if _, is := o.(*corev1.ConfigMap); is {
			return boom
		}
		return nil
	}
	if err := reconcile(t, w, "c"); !errors.Is(err, boom) {
		t.Errorf("nobody is told: %v", err)
	}
	if all := there(t, w, "c"); len(all) != 0 {
		t.Errorf("%d objects are there", len(all))
	}
}

// TestCached holds that of all ConfigMaps and roles those of one name are in memory, and not what they say.
func TestCached(t *testing.T) {
	kinds := 0
	for kind, by := range reports.Cached() {
		kinds++
		if by.Field == nil || by.Field.Matches(fields.Set{"metadata.name": "other"}) ||
			!by.Field.Matches(fields.Set{"metadata.name": report.Name}) {
			t.Errorf("of %T others are kept", kind)
		}
		if _, is := kind.(*corev1.ConfigMap); !is {
			continue
		}
		told, _, _ := reports.Forge(&liqo.Peer{Permit: transittest.Permit("c")})
		kept, err := by.Transform(told)
		if cm, is := kept.(*corev1.ConfigMap); err != nil || !is || len(cm.Data) > 0 || len(cm.OwnerReferences) != 1 {
			t.Errorf("what is reported is kept, or not of which peering it is: %v, %v", kept, err)
		}
	}
	if kinds != 3 {
		t.Errorf("%d of 3 kinds are bounded", kinds)
	}
}
