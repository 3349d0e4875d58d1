// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// lost are the fields of a pod's spec that docs/pods.md says do not reach the cluster where it runs.
func lost(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/pods.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## What of a pod's spec stays here\n")
	if section, _, _ = strings.Cut(section, "\n## "); !found {
		t.Fatal("docs/pods.md has no such section")
	}
	var fields []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, name := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
				fields = append(fields, name[1])
			}
		}
	}
	return slices.Sorted(slices.Values(fields))
}

// fill gives a value, and all that is in it, something else than nothing.
func fill(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*value = resource.MustParse("1")
		return
	case *metav1.Time:
		*value = metav1.Unix(1, 0)
		return
	case *intstr.IntOrString:
		*value = intstr.FromInt32(1)
		return
	}
	switch v.Kind() { //nolint:exhaustive // The others are in no spec of a pod, and panic.
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	default:
		panic("no value for a " + v.Kind().String())
	}
}

// forgedAgain returns what Liqo makes of the spec of a pod that is passed on by one cluster, and by a second one.
func forgedAgain(spec *corev1.PodSpec) *corev1.PodSpec {
	for range 2 {
		forged := forge.RemotePodSpec(true, spec.DeepCopy(), &corev1.PodSpec{},
			forge.APIServerSupportMutator(forge.APIServerSupportDisabled, nil, "", nil, nil, "", ""),
			forge.ServiceAccountMutator(forge.APIServerSupportDisabled, nil))
		spec = &forged
	}
	return spec
}

// TestWhatOfASpecIsPassedOn sets each field of a pod's spec, and compares those that Liqo does not pass on with docs/pods.md. A field that
// is new in Kubernetes is one of them: say there what it means, or pass it on.
func TestWhatOfASpecIsPassedOn(t *testing.T) {
	is := map[string]bool{}
	fields := reflect.TypeFor[corev1.PodSpec]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		var spec corev1.PodSpec
		field := reflect.ValueOf(&spec).Elem().Field(i)
		fill(field)
		is[name] = reflect.DeepEqual(field.Interface(), reflect.ValueOf(forgedAgain(&spec)).Elem().Field(i).Interface())
	}
	maps.DeleteFunc(is, func(_ string, passed bool) bool { return passed })
	if diff := cmp.Diff(lost(t), slices.Sorted(maps.Keys(is))); diff != "" {
		t.Errorf("docs/pods.md has not what is lost: -want +got\n%s", diff)
	}
	// Containers are passed on as a whole: they go on naming what is lost.
	claims := forgedAgain(&corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}},
	}})
	if len(claims.Containers[0].Resources.Claims) != 1 {
		t.Error("a container does not name its claim any more")
	}
}
