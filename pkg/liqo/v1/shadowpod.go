// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// WantsPod reports whether a peer wants the pod of a name: it has a ShadowPod of that name here, which is not being deleted. Of a pod that
// is gone Liqo then makes another one, unless it has seen that the pod had ended
// (liqo/pkg/liqo-controller-manager/offloading/shadowpod-controller/shadowpod_controller.go@v1.2.0).
func WantsPod(ctx context.Context, objects client.Reader, pod client.ObjectKey) (bool, error) {
	var shadow metav1.PartialObjectMetadata
	shadow.SetGroupVersionKind(schema.GroupVersionKind{Group: api.OffloadingGroup, Version: api.Beta, Kind: "ShadowPod"})
	err := objects.Get(ctx, pod, &shadow)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out whether a peer wants pod %s: %w", pod, err)
	}
	return shadow.DeletionTimestamp.IsZero(), nil
}
