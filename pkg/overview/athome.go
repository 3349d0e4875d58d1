// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// AtHome returns a finding for each namespace of a consumer whose pods are all to run elsewhere, and that has pods which cannot: Liqo looks
// at new pods only, and only in namespaces that it has labelled, so that those stay at home which came in the same moment as their
// offloading. The pods of nodes, such as those of a DaemonSet, are meant to stay.
func AtHome(namespaces []corev1.Namespace, offloadings []liqo.Offloading, nodes []corev1.Node, pods []corev1.Pod) []Finding {
	open, remote, virtual := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range namespaces {
		open[namespaces[i].Name] = liqo.Open(&namespaces[i])
	}
	for i := range offloadings {
		if o := &offloadings[i]; o.Remote && !o.Managed {
			remote[o.Namespace] = true
		}
	}
	for i := range nodes {
		virtual[nodes[i].Name] = liqo.NodeCluster(&nodes[i]) != ""
	}

	// What is at home, by namespace.
	home := map[string][]*corev1.Pod{}
	for i := range pods {
		pod := &pods[i]
		if remote[pod.Namespace] && !virtual[pod.Spec.NodeName] && !liqo.Admitted(pod) && !podstate.Ended(pod) && !ofNode(pod) &&
			pod.DeletionTimestamp.IsZero() {
			home[pod.Namespace] = append(home[pod.Namespace], pod)
		}
	}
	var all []Finding
	for _, namespace := range slices.Sorted(maps.Keys(home)) {
		left := home[namespace]
		slices.SortFunc(left, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		f := Finding{true, fmt.Sprintf("Pods of namespace %s run at home, though all are to run elsewhere: they were made before Liqo had "+
			"labelled the namespace. There are %d: %s", namespace, len(left), names(left)), "Make them again: " + remake(namespace, left)}
		if !open[namespace] {
			f.Do = "Liqo has not labelled the namespace yet. See why: kubectl describe namespaceoffloading -n " + namespace + " offloading. Then: " +
				remake(namespace, left)
		}
		all = append(all, f)
	}
	return all
}

// mostMade is how many pods or what makes them a finding names at most: a namespace may have thousands.
const mostMade = 20

// NoBroker says that a cluster, which people call so, has no node of a broker, given how it reaches pods at those that it has, and what to
// do about it; empty if nothing says that there is to be one.
func NoBroker(ways *liqo.Ways, called string) (what, do string) {
	switch {
	case ways.Noted:
		return fmt.Sprintf("%s neither is a broker's nor uses one: it knows no Providers, and has no virtual node with the label %s", called,
			liqo.LabelVirtualKubelet), ""
	case len(ways.Through) > 0:
		brokers := slices.Sorted(maps.Keys(ways.Through))
		return fmt.Sprintf("%s has no virtual node of its broker %s yet", called, brokers[0]), "kubectl liqo-broker diagnose"
	default:
		return called + " neither is a broker's nor uses one: it knows no Providers, and nobody has said that a peer is a broker",
			"kubectl liqo-broker prepare"
	}
}

// ofNode reports whether a pod belongs to its node.
func ofNode(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// remake says how pods of a namespace are made again: what made them does it. Those that nothing made are named.
func remake(namespace string, pods []*corev1.Pod) string {
	// By what is done about them.
	var restart, remove, alone []string
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		deployment, ofDeployment := "", false
		// The name of a ReplicaSet ends with the label by which a Deployment tells its ReplicaSets apart.
		if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; owner != nil && owner.Kind == "ReplicaSet" && hash != "" {
			deployment, ofDeployment = strings.CutSuffix(owner.Name, "-"+hash)
		}
		switch {
		case ofDeployment:
			restart = append(restart, "deployment/"+deployment)
		case owner != nil && owner.Kind == "StatefulSet":
			restart = append(restart, "statefulset/"+owner.Name)
		case owner == nil:
			alone = append(alone, pod.Name)
		default:
			remove = append(remove, pod.Name)
		}
	}

	// As commands, which name not too many.
	slices.Sort(restart)
	var commands []string
	again := func(command string, all []string) {
		if len(all) > 0 {
			commands = append(commands, "kubectl "+command+" -n "+namespace+" "+strings.Join(all[:min(len(all), mostMade)], " "))
		}
		if more := len(all) - mostMade; more > 0 {
			commands = append(commands, fmt.Sprintf("then the same for %d more", more))
		}
	}
	again("rollout restart", slices.Compact(restart))
	again("delete pod", remove)
	if len(alone) > 0 {
		commands = append(commands, "delete and create yourself what nothing else creates again: "+excerpt.Names(alone, mostMade))
	}
	return strings.Join(commands, "; ")
}

// names returns the names of the first of some pods.
func names(pods []*corev1.Pod) string {
	all := make([]string, len(pods))
	for i, pod := range pods {
		all[i] = pod.Name
	}
	return excerpt.Names(all, 4)
}
