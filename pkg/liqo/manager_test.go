// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// TestUnguarded reads command lines as Liqo's controller manager does.
func TestUnguarded(t *testing.T) {
	const own, ofLiqo, plugin = "--kubelet-image=example.com/liqo-broker-vk:v1", "--kubelet-image=ghcr.io/liqotech/virtual-kubelet:v0.9.4",
		"--resource-plugin-address=broker:6001"
	const kubelet, everybody = "--kubelet-image", "every peer gets a part"
	cases := map[string]struct {
		reason string
		line   liqo.Manager
		want   []string // Parts of the reasons, in order.
	}{
		"Guarded": {"Both are ours.", liqo.Manager{own, plugin}, nil},
		"TwoWords": {
			"A value may be a word of its own.", liqo.Manager{"--kubelet-image", "liqo-broker-vk", "--resource-plugin-address", "broker:6001"}, nil,
		},
		"OneDash":      {"Go takes one dash.", liqo.Manager{own[1:], plugin[1:]}, nil},
		"NotIncoming":  {"Nobody gets anything.", liqo.Manager{own, "--enable-incoming-peering=false"}, nil},
		"NotIncoming0": {"There are other words for it.", liqo.Manager{own, "--enable-incoming-peering=0"}, nil},
		"Nothing":      {"Liqo has its own of each.", liqo.Manager{"/usr/bin/liqo-controller-manager"}, []string{kubelet, everybody}},
		"LiqosKubelet": {"It believes what peers write.", liqo.Manager{ofLiqo, plugin}, []string{kubelet}},
		"LastKubelet":  {"The last one counts.", liqo.Manager{own, plugin, ofLiqo}, []string{kubelet}},
		"LastIncoming": {
			"Also of these.", liqo.Manager{own, "--enable-incoming-peering=false", "--enable-incoming-peering"}, []string{everybody},
		},
		"Incoming":      {"It is said.", liqo.Manager{own, "--enable-incoming-peering=true"}, []string{everybody}},
		"IncomingWord":  {"Go takes no word of its own here.", liqo.Manager{own, "--enable-incoming-peering", "false"}, []string{everybody}},
		"IncomingJunk":  {"It cannot be read.", liqo.Manager{own, "--enable-incoming-peering=no"}, []string{everybody}},
		"EmptyPlugin":   {"That is none.", liqo.Manager{own, "--resource-plugin-address="}, []string{everybody}},
		"NoValue":       {"It ends too early.", liqo.Manager{own, "--resource-plugin-address"}, []string{everybody}},
		"AnotherFlag":   {"It begins as the flag does.", liqo.Manager{own, "--resource-plugin-address-v2=broker"}, []string{everybody}},
		"PrefixedImage": {"It ends as ours does.", liqo.Manager{"--kubelet-image=example.com/not-liqo-broker-vk:v1", plugin}, []string{kubelet}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.line.Unguarded()
			if len(got) != len(tc.want) {
				t.Fatalf("%s\nUnguarded() = %q, want %q", tc.reason, got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("%s\nUnguarded() = %q, want %q", tc.reason, got, tc.want)
				}
			}
		})
	}
}

func TestReadManager(t *testing.T) {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = liqo.DefaultNamespace, liqo.ManagerName
	read := func() (liqo.Manager, error) {
		return liqo.ReadManager(t.Context(), fake.NewClientBuilder().WithObjects(d.DeepCopy()).Build(), liqo.DefaultNamespace)
	}
	if line, err := read(); err == nil {
		t.Errorf("a Deployment without containers has the command line %q", line)
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Command: []string{"manager"}, Args: []string{"--a", "b"}}, {Args: []string{"--kubelet-image=x"}},
	}
	if line, err := read(); err != nil || fmt.Sprint(line) != "[manager --a b]" {
		t.Errorf("ReadManager() = %q, %v", line, err)
	}
}

func TestOwnVirtualKubelet(t *testing.T) {
	for image, want := range map[string]bool{
		"liqo-broker-vk":                                  true,
		"liqo-broker-vk:v1":                               true,
		"localhost:5000/liqo-broker-vk":                   true,
		"registry.example.com:5000/a/b/liqo-broker-vk:v1": true,
		"example.com/liqo-broker-vk@sha256:0123456789":    true,
		"example.com/liqo-broker-vk:v1@sha256:0123456789": true,
		"": false,
		"ghcr.io/liqotech/virtual-kubelet:v0.9.4":           false,
		"example.com/liqo-broker-vk/virtual-kubelet":        false,
		"example.com/virtual-kubelet:liqo-broker-vk":        false,
		"example.com/virtual-kubelet@sha256:liqo-broker-vk": false,
		"liqo-broker-vk:5000/virtual-kubelet":               false,
	} {
		if got := liqo.OwnVirtualKubelet(image); got != want {
			t.Errorf("OwnVirtualKubelet(%q) = %t", image, got)
		}
	}
}
