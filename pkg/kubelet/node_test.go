// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// TestSign checks that a virtual node says whose virtual kubelet it has: by that it gets what namespace liqo has to show.
func TestSign(t *testing.T) {
	given := map[string]string{"example.com/rack": "1"}
	for name, labels := range map[string]map[string]string{"none": nil, "some": given} {
		signed := withSign(labels)
		sign, ok := signed[liqo.LabelVirtualKubelet]
		if wrong := validation.IsValidLabelValue(sign); !ok || len(wrong) > 0 || len(signed) != len(labels)+1 {
			t.Errorf("with %s of its own, the node has the labels %v: %v", name, signed, wrong)
		}
	}
	if len(given) != 1 {
		t.Errorf("the labels that are given change: %v", given)
	}
}
