// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// An amount is so much of a resource, in the units in which Kubernetes' scheduler counts: thousandths of cores, and whole units of all
// else, both rounded up.
type amount struct {
	name  corev1.ResourceName
	count int64
}

// amounts have each resource once, by name, and none of which there is nothing. They take little memory: there is one for each pod.
type amounts []amount

// mostCores is more than any cluster has, and still a number in thousandths.
const mostCores = 1 << 50

// amountsOf returns the amounts of a list, within what can be meant.
func amountsOf(list corev1.ResourceList) amounts {
	var all amounts
	for name, quantity := range resources.Bounded(list) {
		var count int64
		switch {
		case name != corev1.ResourceCPU:
			count = quantity.Value()
		case quantity.CmpInt64(mostCores) > 0:
			count = mostCores * 1000
		default:
			count = quantity.MilliValue()
		}
		if count > 0 {
			all = append(all, amount{name, count})
		}
	}
	slices.SortFunc(all, func(a, b amount) int { return cmp.Compare(a.name, b.name) })
	return all
}

// of returns how much there is of a resource.
func (a amounts) of(name corev1.ResourceName) int64 {
	for i := range a {
		if a[i].name == name {
			return a[i].count
		}
	}
	return 0
}

// sum adds two counts that are not negative. What is too large for a number is the largest one.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// requested returns what a pod requests, as the API server and the scheduler understand it: what is limited and not requested, is
// requested. What is negative, which no pod may be, is nothing: a ShadowPod may say anything. What a pod requests as a whole counts
// where it is more than what its containers do: of a pod it cannot be less, and a cluster that does not know it takes the containers'.
func requested(spec *corev1.PodSpec) amounts {
	sound := corev1.PodSpec{
		Overhead: positive(spec.Overhead), Containers: defaulted(spec.Containers), InitContainers: defaulted(spec.InitContainers),
	}
	most := capacity.BoundedRequests(&sound)
	if spec.Resources != nil {
		whole := requestedOrLimited(*spec.Resources)
		for name := range most {
			if _, requested := spec.Resources.Requests[name]; !requested {
				delete(whole, name) // A limit of the pod is a request only where no container requests something.
			}
		}
		sound.Resources = &corev1.ResourceRequirements{Requests: whole}
		most = resources.Max(most, capacity.BoundedRequests(&sound))
	}
	return amountsOf(most)
}

// defaulted returns of containers what they request, as the API server defaults it for pods
// (SetDefaults_Pod in k8s.io/kubernetes/pkg/apis/core/v1/defaults.go@v1.28).
func defaulted(containers []corev1.Container) []corev1.Container {
	sound := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		requests := corev1.ResourceRequirements{Requests: requestedOrLimited(c.Resources)}
		sound[i] = corev1.Container{RestartPolicy: c.RestartPolicy, Resources: requests}
	}
	return sound
}

// requestedOrLimited returns what is requested, and of what is not requested the limit.
func requestedOrLimited(of corev1.ResourceRequirements) corev1.ResourceList {
	requests := positive(of.Limits)
	for name, quantity := range of.Requests {
		delete(requests, name)
		if quantity.Sign() > 0 {
			requests[name] = quantity
		}
	}
	return requests
}

// positive returns what of a list is more than nothing.
func positive(list corev1.ResourceList) corev1.ResourceList {
	sound := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		if quantity.Sign() > 0 {
			sound[name] = quantity
		}
	}
	return sound
}

// A shortage is a resource of which pods would have more than their cluster is offered.
type shortage struct {
	name           corev1.ResourceName
	would, offered int64
}

// String returns what people are told.
func (s shortage) String() string {
	return fmt.Sprintf("%s of %s %s", show(s.name, s.would), show(s.name, s.offered), s.name)
}

// show returns a count as people write quantities.
func show(name corev1.ResourceName, count int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(count, resource.DecimalSI).String()
	case name == corev1.ResourceMemory || strings.HasSuffix(string(name), "storage") ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(count, resource.BinarySI).String()
	default:
		return resource.NewQuantity(count, resource.DecimalSI).String()
	}
}
