// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"errors"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	sharingv1alpha1 "github.com/liqotech/liqo/apis/sharing/v1alpha1"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddToScheme registers the types of Liqo that a broker reads and writes.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(
		discoveryv1alpha1.AddToScheme(s),
		netv1alpha1.AddToScheme(s),
		offloadingv1alpha1.AddToScheme(s),
		sharingv1alpha1.AddToScheme(s),
		vkv1alpha1.AddToScheme(s),
	)
}
