// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo1

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// rounds is how many random objects of each kind are read.
const rounds = 50

// TestObjectsKeepTheirFields reads random objects of Liqo's types as ours, and holds that these have all that Liqo's have in the fields
// that we have.
func TestObjectsKeepTheirFields(t *testing.T) {
	liqos := upstream(t)
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(liqos))
	for gvk, our := range ours(t).AllKnownTypes() {
		if _, is := kinds[gvk.Kind]; !is {
			continue
		}
		full := 0
		for range rounds {
			their, err := liqos.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			random.Fill(their)
			text := written(t, their)
			read := reflect.New(our)
			if err := json.Unmarshal(text, read.Interface()); err != nil {
				t.Fatalf("read a %s: %v\n%s", gvk.Kind, err, text)
			}
			want := known(parsed(t, text), our)
			if diff := cmp.Diff(want, parsed(t, written(t, read.Interface()))); diff != "" {
				t.Fatalf("a %s loses what is in it: -want +got\n%s", gvk.Kind, diff)
			}
			for _, part := range []string{"spec", "status"} {
				if content, is := want.(map[string]any)[part].(map[string]any); is && len(content) > 0 {
					full++
				}
			}
		}
		if full < rounds/4 {
			t.Errorf("only %d parts of random objects of kind %s have anything in them", full, gvk.Kind)
		}
	}
}

func written(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parsed(t *testing.T, text []byte) any {
	t.Helper()
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// known returns what a type knows of the content of an object.
func known(content any, by reflect.Type) any {
	if by.Kind() == reflect.Pointer {
		return known(content, by.Elem())
	}
	if reflect.PointerTo(by).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return content
	}
	switch of := content.(type) {
	case map[string]any:
		kept := map[string]any{}
		if by.Kind() == reflect.Map {
			for key, value := range of {
				kept[key] = known(value, by.Elem())
			}
			return kept
		}
		for name, f := range fieldsOf(by) {
			if value, is := of[name]; is {
				kept[name] = known(value, f.goType)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(of))
		for i := range of {
			kept[i] = known(of[i], by.Elem())
		}
		return kept
	default:
		return content
	}
}

// TestPatchesKeepWhatWeDoNotKnow writes a grant into the status of a ResourceSlice, as a patch, and holds that the certificate there stays,
// of which our type knows nothing.
func TestPatchesKeepWhatWeDoNotKnow(t *testing.T) {
	at := metav1.NewTime(time.Unix(1, 0))
	theirs := authv1beta1.ResourceSlice{Status: authv1beta1.ResourceSliceStatus{
		AuthParams: &authv1beta1.AuthParams{SignedCRT: []byte("certificate")},
		Conditions: []authv1beta1.ResourceSliceCondition{{
			Type: authv1beta1.ResourceSliceConditionTypeAuthentication, Status: authv1beta1.ResourceSliceConditionAccepted,
			LastTransitionTime: at, Message: "by Liqo",
		}},
	}}
	var before api.ResourceSlice
	if err := json.Unmarshal(written(t, theirs), &before); err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	after.Status.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	after.Status.Conditions = append(after.Status.Conditions, api.ResourceSliceCondition{
		Type: api.SliceResources, Status: api.SliceAccepted, LastTransitionTime: at,
	})
	patch, err := client.MergeFrom(&before).Data(after)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch(written(t, theirs), patch)
	if err != nil {
		t.Fatal(err)
	}
	want := theirs.DeepCopy()
	want.Status.Resources = after.Status.Resources
	want.Status.Conditions = append(want.Status.Conditions, authv1beta1.ResourceSliceCondition{
		Type: authv1beta1.ResourceSliceConditionTypeResources, Status: authv1beta1.ResourceSliceConditionAccepted, LastTransitionTime: at,
	})
	if diff := cmp.Diff(parsed(t, written(t, want)), parsed(t, merged)); diff != "" {
		t.Errorf("after the patch %s: -want +got\n%s", patch, diff)
	}
}
