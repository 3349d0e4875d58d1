// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/explain"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// explains says what is known of one namespace.
type explains struct{ err error }

func (e explains) Explain(_ context.Context, namespace string) (explain.Namespace, bool, error) {
	return explain.Namespace{Name: namespace}, namespace == "shop-consumer", e.err
}

func (e explains) PreviewDrain(context.Context, cluster.ID, v1alpha1.Scheduling) (apiv1.DrainPreview, bool, error) {
	return apiv1.DrainPreview{}, false, e.err
}

// TestWhoMayAskForPlans asks with the right for one namespace, and with others.
func TestWhoMayAskForPlans(t *testing.T) {
	cases := map[string]struct {
		reason string
		token  string
		method string
		name   string
		cfg    Config
		code   int
	}{
		"Operator": {reason: "Who may get the plans there gets them.", token: "operator", code: http.StatusOK},
		"Elsewhere": {
			reason: "And those of no other namespace, whether it exists or not.", token: "operator", name: "other", code: http.StatusForbidden,
		},
		"Reader":  {reason: "Who may list policies may not for that.", token: "reader", code: http.StatusForbidden},
		"Toggler": {reason: "Nor who may switch providers.", token: "good", code: http.StatusForbidden},
		"Anonymous": {
			reason: "Nobody gets them without a name, whatever else is open.", cfg: Config{AnonymousToggle: true, AnonymousCatalog: true},
			code: http.StatusUnauthorized,
		},
		"Post":   {reason: "Nothing can be changed.", token: "operator", method: http.MethodPost, code: http.StatusMethodNotAllowed},
		"NoName": {reason: "What is no name is asked of nobody.", token: "down", name: "Shop..x", code: http.StatusBadRequest},
		"Failing": {
			reason: "The log says why.", token: "operator", cfg: Config{Explainer: explains{errors.New("s3cret")}},
			code: http.StatusInternalServerError,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := tc.cfg
			cfg.Client, cfg.Orchestrator = newClient(t, reviews()), true
			if cfg.Explainer == nil {
				cfg.Explainer = explains{}
			}
			method, asked, header := tc.method, tc.name, []string(nil)
			if method == "" {
				method = http.MethodGet
			}
			if asked == "" {
				asked = "shop-consumer"
			}
			if tc.token != "" {
				header = []string{"Authorization", "Bearer " + tc.token}
			}
			w := call(t, newHandler(t, cfg), method, "/debug/namespaces/"+asked, header...)
			if w.Code != tc.code || strings.Contains(w.Body.String(), "s3cret") {
				t.Errorf("%s\n%d %s, want %d", tc.reason, w.Code, w.Body, tc.code)
			}
		})
	}
	h := newHandler(t, Config{Client: newClient(t, reviews()), Catalog: true})
	if w := call(t, h, http.MethodGet, "/debug/namespaces/shop-consumer", "Authorization", "Bearer operator"); w.Code != http.StatusNotFound {
		t.Errorf("a catalog answers %d %s", w.Code, w.Body)
	}
}

// TestPlanOfANamespace asks why a pod waits, of the planner that the daemon has.
func TestPlanOfANamespace(t *testing.T) {
	const namespace = "shop-consumer"
	shadow := liqotest.ShadowPod(namespace, "web-0", map[string]string{"app": "web"})
	pod := liqotest.Pod(shadow, "")
	pod.Spec.Containers = []corev1.Container{
		{Name: "web", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "s3cret"}}, Args: []string{"s3cret"}},
	}
	pod.Annotations = map[string]string{"note": "s3cret"}
	writes := 0
	wrote := func() error { writes++; return errors.New("nothing is to be written") }
	c := snapshottest.NewClient(t, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return wrote() },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return wrote() },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return wrote()
		},
	}, liqotest.TwinNamespace(namespace, cluster.Identity{ID: "id-c", Name: "consumer"}), shadow, pod)
	events := record.NewFakeRecorder(10)
	h := newHandler(t, Config{Client: newClient(t, reviews()), Aggregator: true, Explainer: &planning.Explainer{
		Client: c, Reader: snapshottest.Reader(c, ""), Planner: planning.NewPlanner(events, clock.RealClock{}, nil),
	}})
	w := call(t, h, http.MethodGet, "/debug/namespaces/"+namespace, "Authorization", "Bearer operator")
	var got explain.Namespace
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if got.Consumer != "id-c" || got.Waiting == nil || got.Waiting.Reason != "NoUsableProvider" || got.Pods.Count != 1 ||
		got.Pods.Items[0].Name != "web-0" || got.Pods.Items[0].Why != "no provider takes new pods" {
		t.Errorf("the answer is %s", w.Body)
	}
	if strings.Contains(w.Body.String(), "s3cret") {
		t.Errorf("the answer tells what is in the pod: %s", w.Body)
	}
	if writes > 0 || len(events.Events) > 0 {
		t.Errorf("who looks makes %d writes and %d events", writes, len(events.Events))
	}

	// The plan of a namespace that is not there.
	c = snapshottest.NewClient(t, interceptor.Funcs{})
	h = newHandler(t, Config{Client: newClient(t, reviews()), Aggregator: true, Explainer: &planning.Explainer{
		Client: c, Reader: snapshottest.Reader(c, ""), Planner: planning.NewPlanner(events, clock.RealClock{}, nil),
	}})
	if w := call(t, h, http.MethodGet, "/debug/namespaces/"+namespace, "Authorization", "Bearer operator"); w.Code != http.StatusNotFound {
		t.Errorf("without the namespace: %d %s", w.Code, w.Body)
	}
}
