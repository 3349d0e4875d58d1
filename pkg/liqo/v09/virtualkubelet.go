// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/vkMachinery"
	"k8s.io/apimachinery/pkg/labels"
)

// IPAMPort is where Liqo's network manager serves its IPAM, to the virtual
// kubelets of its own cluster.
const IPAMPort = consts.NetworkManagerIpamPort

// VirtualKubeletSelector selects the pods of virtual kubelets, and whatever pod
// of a peer takes their labels: only those in tenant namespaces are real.
func VirtualKubeletSelector() labels.Selector {
	return labels.SelectorFromSet(vkMachinery.KubeletBaseLabels)
}

// ControllerManagerSelector selects the pods of Liqo's controller manager, in the namespace
// of Liqo (liqo.selectorLabels in liqo/deployments/liqo/templates/_helpers.tpl@v0.9.4).
func ControllerManagerSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{"app.kubernetes.io/part-of": "liqo", "app.kubernetes.io/name": "controller-manager"})
}

// APIServerAlias is the name that Liqo makes lead, by a host alias, to the API server of
// the cluster that a pod belongs to (liqo/pkg/virtualKubelet/forge/pods.go@v0.9.4).
const APIServerAlias = "kubernetes.default"
