// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Decoder is one of package admission.
type Decoder interface {
	DecodeRaw(object runtime.RawExtension, into runtime.Object) error
}

// Decode reads an object about which the API server asks, by an empty one of its kind, which stays empty. What Check finds is an error.
func Decode(decoder Decoder, object runtime.RawExtension, kind client.Object) (client.Object, error) {
	into := kind.DeepCopyObject().(client.Object) //nolint:revive // A copy is of the same type.
	if err := Check(object.Raw, into); err != nil {
		return nil, err
	}
	if err := decoder.DecodeRaw(object, into); err != nil {
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	return into, nil
}
