// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
)

const (
	gpu, npu       = "nvidia.com/gpu", "example.com/npu"
	product, rack  = "nvidia.com/gpu.product", "example.com/rack"
	notAsked, many = "kubernetes.io/hostname", "2"
)

// equipped returns a node with devices and labels.
func equipped(name string, devices map[corev1.ResourceName]string, labels map[string]string, change ...func(*corev1.Node)) corev1.Node {
	return node(name, func(n *corev1.Node) {
		n.Labels = map[string]string{notAsked: name}
		maps.Copy(n.Labels, labels)
		for device, amount := range devices {
			n.Status.Allocatable[device] = resource.MustParse(amount)
		}
		for _, do := range change {
			do(n)
		}
	})
}

func TestAttributes(t *testing.T) {
	type labels = map[string]string
	type devices = map[corev1.ResourceName]string
	away := func(n *corev1.Node) { n.Status.Conditions, n.Spec.Unschedulable = nil, true }
	virtual := func(n *corev1.Node) { n.Labels[liqo.LabelNodeType] = liqo.NodeTypeVirtual }
	for name, tc := range map[string]struct {
		reason string
		nodes  []corev1.Node
		of     []corev1.ResourceName
		want   labels
	}{
		"One": {
			reason: "Of one node all that was asked for is true, and nothing else is told.",
			nodes:  []corev1.Node{equipped("a", devices{gpu: many}, labels{product: "NVIDIA-L4", rack: "1"})},
			of:     []corev1.ResourceName{gpu}, want: labels{product: "NVIDIA-L4", rack: "1"},
		},
		"Shared": {
			reason: "What differs between nodes is true of none of what is sold.",
			nodes: []corev1.Node{
				equipped("a", devices{gpu: many}, labels{product: "NVIDIA-L4", rack: "1"}),
				equipped("b", devices{gpu: "8"}, labels{product: "NVIDIA-L4", rack: "2"}),
			},
			of: []corev1.ResourceName{gpu}, want: labels{product: "NVIDIA-L4"},
		},
		"Missing": {
			reason: "A node that does not say it may have another model.",
			nodes:  []corev1.Node{equipped("a", devices{gpu: many}, labels{product: "NVIDIA-L4"}), equipped("b", devices{gpu: many}, nil)},
			of:     []corev1.ResourceName{gpu}, want: labels{},
		},
		"Away": {
			reason: "A node that is away for a moment comes back with its model.",
			nodes: []corev1.Node{
				equipped("a", devices{gpu: many}, labels{product: "NVIDIA-L4"}),
				equipped("b", devices{gpu: many}, labels{product: "NVIDIA-A100"}, away),
			},
			of: []corev1.ResourceName{gpu}, want: labels{},
		},
		"Others": {
			reason: "Nodes without the device say nothing of it, nor do those of other clusters.",
			nodes: []corev1.Node{
				equipped("a", devices{gpu: many}, labels{product: "NVIDIA-L4"}),
				equipped("b", devices{gpu: "0"}, labels{product: "NVIDIA-A100"}),
				equipped("c", nil, labels{product: "NVIDIA-A100"}),
				equipped("d", devices{gpu: many}, labels{product: "NVIDIA-A100"}, virtual),
			},
			of: []corev1.ResourceName{gpu}, want: labels{product: "NVIDIA-L4"},
		},
		"Both": {
			reason: "Who buys both devices gets pods on nodes of both kinds.",
			nodes: []corev1.Node{
				equipped("a", devices{gpu: many}, labels{product: "NVIDIA-L4", rack: "1"}), equipped("b", devices{npu: many}, labels{rack: "1"}),
			},
			of: []corev1.ResourceName{gpu, npu}, want: labels{rack: "1"},
		},
		"None": {
			reason: "Of a device that no node has there is nothing to say.", nodes: []corev1.Node{equipped("a", nil, labels{rack: "1"})},
			of: []corev1.ResourceName{gpu},
		},
		"NoDevice": {
			reason: "Nor of what is no device.", nodes: []corev1.Node{equipped("a", devices{gpu: many}, labels{rack: "1"})},
			of: []corev1.ResourceName{corev1.ResourceCPU},
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithLists(&corev1.NodeList{Items: tc.nodes}).Build()
			all, err := capacity.AttributesOfCluster(api, []string{product, rack})(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, all.Of(tc.of...)); diff != "" {
				t.Errorf("%s -want +got\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, all.Of(append(tc.of, tc.of...)...)); diff != "" {
				t.Errorf("asked once more: -want +got\n%s", diff)
			}
		})
	}
}
