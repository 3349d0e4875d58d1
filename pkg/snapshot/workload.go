// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import corev1 "k8s.io/api/core/v1"

// Workload returns what is equal for the pods of a namespace that can stand in for
// each other.
func Workload(pod *corev1.Pod) string { return workload(pod.Name, pod.Labels) }
