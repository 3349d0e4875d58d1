// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line/linetest"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

func TestWantsPod(t *testing.T) {
	shadow := func(namespace, name string) *api.ShadowPod {
		return &api.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	leaving := shadow("web", "leaving")
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: linetest.Measured()}, []string{"brokering.liqo.io/test"}
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shadow("web", "wanted"), leaving, shadow("other", "elsewhere")).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if key.Name == "broken" {
					return boom
				}
				return c.Get(ctx, key, o, opts...)
			},
		}).Build()
	for name, tc := range map[string]struct {
		reason string
		want   bool
		err    error
	}{
		"wanted":    {"Its peer has asked for it.", true, nil},
		"leaving":   {"Its peer takes that back.", false, nil},
		"gone":      {"Nobody has.", false, nil},
		"elsewhere": {"Another pod is called so.", false, nil},
		"broken":    {"What could not be read is not said to be gone.", false, boom},
	} {
		got, err := WantsPod(t.Context(), objects, client.ObjectKey{Namespace: "web", Name: name})
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %s\nWantsPod() = %t, %v", name, tc.reason, got, err)
		}
	}
}
