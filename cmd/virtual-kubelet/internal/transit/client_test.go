// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	vkclient "github.com/liqotech/liqo/pkg/client/clientset/versioned/typed/virtualkubelet/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// failing is a client of ShadowPods that cannot delete.
type failing struct {
	vkclient.ShadowPodInterface

	err error
}

func (f failing) Delete(context.Context, string, metav1.DeleteOptions) error { return f.err }

// TestDeleteShadowPod fails to delete a ShadowPod.
func TestDeleteShadowPod(t *testing.T) {
	unreached := &net.OpError{Op: "dial", Err: errors.New("no route to host")}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "shadowpods"}, "web")
	cases := map[string]struct {
		reason string
		err    error
		soon   bool
	}{
		"Deleted":   {reason: "Nothing failed."},
		"Unreached": {reason: "A cluster that is out of reach is soon tried again.", err: fmt.Errorf("delete: %w", unreached), soon: true},
		"Missing":   {reason: "What the cluster answers is for Liqo to judge.", err: missing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := transitShadowPods{ShadowPodInterface: failing{err: tc.err}}.Delete(t.Context(), "web", metav1.DeleteOptions{})
			if !errors.Is(got, tc.err) {
				t.Errorf("%s\nDelete(): %v, want %v", tc.reason, got, tc.err)
			}
			if soon := got != nil && strings.Contains(got.Error(), "enqueue element for reconciliation after 5s"); soon != tc.soon {
				t.Errorf("%s\nDelete(): %v; soon again: %t", tc.reason, got, soon)
			}
		})
	}
}
