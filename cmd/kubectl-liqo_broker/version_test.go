// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/install"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// running is a cluster with all that can be there. The virtual kubelet of milan has a tag of its own, and that of turin is Liqo's.
func running(t *testing.T, kubelet string) []client.Object {
	t.Helper()
	deployment := func(namespace, name string, images ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		for _, image := range images {
			container, name, _ := strings.Cut(image, "=")
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: container, Image: name})
		}
		return d
	}
	node := func(name, image string) *v09.VirtualNode {
		n := &v09.VirtualNode{}
		if err := json.Unmarshal([]byte(`{"metadata":{"namespace":"tenant","name":"`+name+`"},"spec":{"template":{"spec":{"template":{"spec":{
			"containers":[{"name":"virtual-kubelet","image":"`+image+`"}]}}}}}}`), n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	return []client.Object{
		deployment("liqo", "liqo-controller-manager", "manager=liqo/controller-manager:v0.9.4", "x=liqo-broker-x:v7"),
		deployment("liqo", "liqo-network-manager", "network-manager=liqo/network-manager:v0.9.4",
			"remote-ipam=example.com:5000/liqo-broker-network-manager:v0.1.0"),
		deployment("liqo-broker", "liqo-broker", "broker=example.com:5000/liqo-broker:v0.1.0"),
		deployment("liqo-broker-guard", "liqo-broker-guard", "guard=liqo-broker@sha256:1234"),
		deployment("liqo-broker-connector", "liqo-broker-connector", "connector=liqo-broker-connector:v0.1.0"),
		node("liqo-milan", "example.com:5000/liqo-broker-vk:"+kubelet), node("liqo-turin", "liqo/virtual-kubelet:v0.9.4"),
	}
}

// TestVersion asks clusters for their versions.
func TestVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		line    string
		differ  bool
	}{
		"version_same.txt":   {running(t, "v0.1.0"), "version", false},
		"version_differ.txt": {running(t, "v0.0.9"), "version", true},
		"version.yaml":       {running(t, "v0.0.9"), "version -o yaml", true},
		"version_client.txt": {running(t, "v0.0.9"), "version --client", false},
		"version_liqo.txt":   {running(t, "v0.1.0")[:1], "version", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := newCLI(t, tc.objects...).run(t, tc.line)
			if tc.differ != errors.Is(err, errUnhealthy) || !tc.differ && err != nil || tc.differ != strings.HasPrefix(errOut, "There are several "+
				"versions: v0.0.9, v0.1.0. ") {
				t.Errorf("%v, %q", err, errOut)
			}
			golden.Check(t, name, out)
		})
	}
	if out, _, err := newCLI(t).run(t, "--version"); err != nil || out != "kubectl liqo-broker version unknown\n" {
		t.Errorf("--version: %q, %v", out, err)
	}
}

// TestVersionOfMany asks a cluster whose programs have one version, which is not that of this plugin.
func TestVersionOfMany(t *testing.T) {
	c := newCLI(t, running(t, "v0.0.9")[5])
	installer, err := install.New(c.client, install.Options{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, errOut, err := c.run(t, "version"); !errors.Is(err, errUnhealthy) || !strings.Contains(errOut, "v0.0.9, "+installer.Tag()) {
		t.Errorf("%q, %v", errOut, err)
	}
}

// TestVersionUnseen asks with few rights, and without an answer.
func TestVersionUnseen(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
	for _, tc := range []struct {
		err  error
		says string
	}{{forbidden, ""}, {errors.New("timed out"), "get deployment liqo/liqo-controller-manager: timed out"}} {
		c := &cli{client: interceptor.NewClient(newFake(t), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return tc.err
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return tc.err
			},
		})}
		out, _, err := c.run(t, "version")
		if tc.says == "" && (err != nil || !strings.Contains(out, "daemon       unknown")) ||
			tc.says != "" && (err == nil || err.Error() != tc.says || program.ExitCode(err) != program.ExitFailure) {
			t.Errorf("%v: %q, %v", tc.err, out, err)
		}
	}
}
