// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// SliceClass is the class of the ResourceSlices that the broker answers.
const SliceClass = "liqo-broker"

// Reclass returns the ResourceSlice that a consumer has put here, in JSON, with SliceClass in place of the class that Liqo itself would
// answer, and nil if it stays as it is. Liqo grants to that class whatever is asked for
// (liqo/pkg/liqo-controller-manager/authentication/remoteresourceslice-controller@v1.2.0), and liqoctl asks for it.
//
// The consumer's Liqo sees another class than it has written, writes its own again at each look, and gets the same answer.
func Reclass(slice []byte) ([]byte, error) {
	var o map[string]any
	if err := peerwrite.Decode(slice, &o); err != nil {
		return nil, err
	}
	labels, _, err := unstructured.NestedStringMap(o, "metadata", "labels")
	if err != nil {
		return nil, fmt.Errorf("read the labels of a ResourceSlice: %w", err)
	}
	class, _, err := unstructured.NestedString(o, "spec", "class")
	if err != nil {
		return nil, fmt.Errorf("read the class of a ResourceSlice: %w", err)
	}
	if labels[liqo.LabelReplicated] != liqo.ReplicationValue || class != "" && class != api.SliceClassDefault {
		return nil, nil
	}
	if err := unstructured.SetNestedField(o, SliceClass, "spec", "class"); err != nil {
		return nil, fmt.Errorf("write the class of a ResourceSlice: %w", err)
	}
	reclassed, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write a ResourceSlice: %w", err)
	}
	return reclassed, nil
}
