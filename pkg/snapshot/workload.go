// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Workload returns what is equal for the pods of a namespace that can stand in for
// each other: those that one controller of the consumer has made, whatever labels they
// have got since.
func Workload(pod *corev1.Pod) string { return workload(pod.Name, pod.Labels) }

// perPod are the labels that differ between the copies of one workload, and between its
// revisions.
var perPod = []string{
	appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel, batchv1.JobCompletionIndexAnnotation,
	appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey,
}

// roles are what operators of databases call a copy that leads and one that follows, in labels
// such as role (Patroni), spilo-role (Zalando) and cnpg.io/instanceRole (CloudNativePG).
var roles = []string{"primary", "master", "leader", "replica", "standby", "standby_leader", "secondary", "slave", "follower"}

// workload returns the controller that a pod's name and labels tell of. A broker sees no
// more of it: the owner is in another cluster. Where they tell of none, it is as labelled says.
func workload(pod string, labels map[string]string) string {
	if set, numbered := withoutNumber(labels[appsv1.StatefulSetPodNameLabel]); numbered {
		return "StatefulSet " + set
	}
	if job := labels[batchv1.JobNameLabel]; job != "" {
		return "Job " + job
	}
	if base, generated := generatedFrom(pod); generated {
		if hash := labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
			if deployment, of := withoutHash(base, hash); of {
				return "Deployment " + deployment
			}
		}
		if labels[appsv1.ControllerRevisionHashLabelKey] != "" {
			return "DaemonSet " + strings.TrimSuffix(base, "-")
		}
	}
	return labelled(pod, labels)
}

// labelled returns the workload of a pod whose controller is not known: the labels without
// those that differ per copy, those that name the pod or its role, and those that Liqo adds.
// A pod without labels of its own is a workload of its own.
func labelled(pod string, labels map[string]string) string {
	var pairs []string
	for key, value := range labels {
		role := strings.HasSuffix(strings.ToLower(key), "role") && slices.Contains(roles, value)
		if !role && value != pod && !liqo.IsOwnLabel(key) && !slices.Contains(perPod, key) {
			pairs = append(pairs, key+"="+value)
		}
	}
	if len(pairs) == 0 {
		return "pod " + pod
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// How Kubernetes makes a name of one that is given: it cuts the given one, and adds random
// letters (k8s.io/apiserver/pkg/storage/names/generate.go@v0.35).
const (
	randomLetters = 5
	longestBase   = 63 - randomLetters
	alphabet      = "bcdfghjklmnpqrstvwxz2456789"
)

// generatedFrom returns what a name was generated from, which usually ends with a dash.
func generatedFrom(name string) (base string, generated bool) {
	if len(name) <= randomLetters {
		return "", false
	}
	base = name[:len(name)-randomLetters]
	random := strings.Trim(name[len(base):], alphabet) == ""
	return base, random && (strings.HasSuffix(base, "-") || len(base) == longestBase)
}

// withoutHash returns the Deployment whose ReplicaSet of a hash has such a name, or the
// beginning of it, if it was cut.
func withoutHash(base, hash string) (deployment string, found bool) {
	end := "-" + hash + "-"
	if deployment, found = strings.CutSuffix(base, end); found || len(base) < longestBase {
		return deployment, found
	}
	for n := len(end) - 1; n > 0; n-- {
		if deployment, found = strings.CutSuffix(base, end[:n]); found {
			return deployment, true
		}
	}
	return base, true
}

// withoutNumber returns the StatefulSet whose pod has such a name.
func withoutNumber(name string) (set string, numbered bool) {
	set = strings.TrimRight(name, "0123456789")
	return strings.TrimSuffix(set, "-"), len(set) > 1 && len(set) < len(name) && strings.HasSuffix(set, "-")
}
