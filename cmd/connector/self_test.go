// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// identityOfLiqo is what Liqo's chart writes first of all that it installs.
func identityOfLiqo() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: liqo.DefaultNamespace, Name: liqo.IdentityName},
		Data:       map[string]string{liqo.IdentityKey: "11111111-2222-4333-8444-555555555555", "CLUSTER_NAME": "here"},
	}
}

// TestAwaitLiqo has Liqo come ten minutes after the connector, which waits for it, says so once, and knows then who it is.
func TestAwaitLiqo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientBuilder().Build()
		const later = 10 * time.Minute
		go func() {
			time.Sleep(later)
			if err := api.Create(t.Context(), identityOfLiqo()); err != nil {
				t.Error(err)
			}
		}()
		var said []string
		log := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
		began := time.Now()
		got, err := awaitLiqo(t.Context(), api, liqo.DefaultNamespace, log)
		want := cluster.Identity{ID: "11111111-2222-4333-8444-555555555555", Name: "here"}
		if err != nil || got != want {
			t.Errorf("this cluster is %+v, %v, want %+v", got, err, want)
		}
		if took := time.Since(began); took < later || took > later+2*liqoPoll {
			t.Errorf("it is known after %s that Liqo has come after %s", took, later)
		}
		if len(said) != 1 || !strings.Contains(said[0], "Waits until Liqo is installed") {
			t.Errorf("it says %q", said)
		}
	})
}

// TestAwaitLiqoEnds holds that nobody waits for what does not come by waiting: rights that are missing, and the end of the program.
func TestAwaitLiqoEnds(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, liqo.IdentityName, errors.New("no rights"))
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tc := range map[string]struct {
		ctx  context.Context
		says error
		want error
	}{
		"Forbidden": {ctx: t.Context(), says: forbidden, want: forbidden},
		"Ended":     {ctx: ended, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tc.says != nil {
						return tc.says
					}
					return c.Get(ctx, key, o, options...)
				},
			}).Build()
			if _, err := awaitLiqo(tc.ctx, api, liqo.DefaultNamespace, logr.Discard()); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}
