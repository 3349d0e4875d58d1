// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// amounts are metrics about resources, one for each resource, because each has a unit of its own. What else clusters offer is in the
// status of their objects: its names are the peers' own, and so would be the number of series.
type amounts struct {
	offered, used map[corev1.ResourceName]*prometheus.Desc
}

func newAmounts(role string) amounts {
	a := amounts{offered: map[corev1.ResourceName]*prometheus.Desc{}, used: map[corev1.ResourceName]*prometheus.Desc{}}
	for resource, name := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: "cpu_cores", corev1.ResourceMemory: "memory_bytes", corev1.ResourcePods: "pods",
	} {
		offered, used := "What the provider adds to what the broker offers: ", "What pods on the provider request: "
		if role == "consumer" {
			offered, used = "What the broker offers to the consumer: ", "What the consumer's pods on the providers request: "
		}
		what := map[corev1.ResourceName]string{corev1.ResourceCPU: "cores.", corev1.ResourceMemory: "memory in bytes.",
			corev1.ResourcePods: "number of pods."}[resource]
		a.offered[resource] = prometheus.NewDesc("liqo_broker_"+role+"_offered_"+name, offered+what, []string{role}, nil)
		a.used[resource] = prometheus.NewDesc("liqo_broker_"+role+"_used_"+name, used+what, []string{role}, nil)
	}
	return a
}

func (a amounts) describeMetrics(descs chan<- *prometheus.Desc) {
	for _, all := range []map[corev1.ResourceName]*prometheus.Desc{a.offered, a.used} {
		for desc := range maps.Values(all) {
			descs <- desc
		}
	}
}

func (a amounts) collect(values chan<- prometheus.Metric, id string, offered, used corev1.ResourceList) {
	for of, descs := range map[*corev1.ResourceList]map[corev1.ResourceName]*prometheus.Desc{&offered: a.offered, &used: a.used} {
		for resource, desc := range descs {
			quantity := (*of)[resource]
			gauge(values, desc, quantity.AsApproximateFloat64(), id)
		}
	}
}

// clusterDescs are the metrics about providers and consumers.
type clusterDescs struct {
	providers, providerInfo, providerReady, providerReachable, providerScheduling, providerPods *prometheus.Desc
	consumerInfo, consumerReady, consumerPods, consumerAgent                                    *prometheus.Desc

	ofProvider, ofConsumer amounts
}

func newClusterDescs() *clusterDescs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("liqo_broker_"+name, help, labels, nil)
	}
	const states = "pending, ready, unready or ended."
	return &clusterDescs{
		providers: desc("providers", "Providers by state: the reason of their Ready condition. A state of no provider is 0.", "state"),
		providerInfo: desc("provider_info",
			"Always 1; the labels say what a provider is called, and its state: the reason of its Ready condition.", "provider", "name", "state"),
		providerReady:     desc("provider_ready", "1 if the provider takes new pods, 0 if it does not.", "provider"),
		providerReachable: desc("provider_reachable", "1 if a virtual node of the provider is ready, 0 if none is.", "provider"),
		providerScheduling: desc("provider_scheduling", "1 for what people want of the provider, 0 for the others: Active, Cordoned or Drained.",
			"provider", "scheduling"),
		providerPods: desc("provider_pods", "Pods on the virtual nodes of the provider, by state: "+states, "provider", "state"),
		consumerInfo: desc("consumer_info",
			"Always 1; the labels say what a consumer is called, and how it is served: Orchestrated, Aggregated, or empty.", "consumer",
			"name", "mode"),
		consumerReady: desc("consumer_ready", "1 if the consumer is offered something, 0 if it is not.", "consumer"),
		consumerAgent: desc("consumer_agent_reporting", "With Liqo 1.x: 1 if the consumer's agent tells that it reaches all networks of "+
			"providers, 0 if something of that is missing. There is none where nobody has to tell.", "consumer"),
		consumerPods: desc("consumer_pods", "Pods of the consumer at the broker, wherever they run, by state: "+states,
			"consumer", "state"),
		ofProvider: newAmounts("provider"),
		ofConsumer: newAmounts("consumer"),
	}
}

func (d *clusterDescs) describeMetrics(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		d.providers, d.providerInfo, d.providerReady, d.providerReachable, d.providerScheduling, d.providerPods,
		d.consumerInfo, d.consumerReady, d.consumerPods, d.consumerAgent,
	} {
		descs <- desc
	}
	d.ofProvider.describeMetrics(descs)
	d.ofConsumer.describeMetrics(descs)
}

// collectProviders tells of each provider, and how many are in which state.
func (d *clusterDescs) collectProviders(values chan<- prometheus.Metric, providers []v1alpha1.Provider, pods map[cluster.ID]podCounts) {
	states := map[string]float64{}
	for _, state := range v1alpha1.ProviderStates() {
		states[state] = 0
	}
	for i := range providers {
		p := &providers[i]
		state := v1alpha1.StateUnknown
		if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			state = ready.Reason
		}
		states[state]++
		gauge(values, d.providerInfo, 1, p.Name, p.Status.ClusterName, state)
		gauge(values, d.providerReady, truth(meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)), p.Name)
		gauge(values, d.providerReachable, truth(meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReachable)), p.Name)
		for _, scheduling := range []v1alpha1.Scheduling{v1alpha1.SchedulingActive, v1alpha1.SchedulingCordoned, v1alpha1.SchedulingDrained} {
			gauge(values, d.providerScheduling, truth(p.EffectiveScheduling() == scheduling), p.Name, string(scheduling))
		}
		pods[cluster.ID(p.Name)].collect(values, d.providerPods, p.Name)
		d.ofProvider.collect(values, p.Name, p.Status.Offered, p.Status.Used)
	}
	for state, n := range states {
		gauge(values, d.providers, n, state)
	}
}

// collectConsumers tells of each consumer.
func (d *clusterDescs) collectConsumers(values chan<- prometheus.Metric, consumers []v1alpha1.Consumer, pods map[cluster.ID]podCounts) {
	for i := range consumers {
		c := &consumers[i]
		gauge(values, d.consumerInfo, 1, c.Name, c.Status.ClusterName, string(c.Status.Mode))
		gauge(values, d.consumerReady, truth(meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady)), c.Name)
		if agent := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAgentReporting); agent != nil &&
			agent.Status != metav1.ConditionUnknown {
			gauge(values, d.consumerAgent, truth(agent.Status == metav1.ConditionTrue), c.Name)
		}
		pods[cluster.ID(c.Name)].collect(values, d.consumerPods, c.Name)
		d.ofConsumer.collect(values, c.Name, c.Status.Offered, c.Status.Used)
	}
}

// podCounts are numbers of pods by state. The zero value is of no pods.
type podCounts struct{ pending, ready, unready, ended float64 }

// with returns the numbers with one more pod.
func (c podCounts) with(pod *corev1.Pod) podCounts {
	switch {
	case podstate.Ended(pod):
		c.ended++
	case podstate.Ready(pod):
		c.ready++
	case pod.Status.Phase == corev1.PodRunning:
		c.unready++
	default:
		c.pending++
	}
	return c
}

// collect tells the numbers of a cluster, zeros as well.
func (c podCounts) collect(values chan<- prometheus.Metric, desc *prometheus.Desc, id string) {
	gauge(values, desc, c.pending, id, "pending")
	gauge(values, desc, c.ready, id, "ready")
	gauge(values, desc, c.unready, id, "unready")
	gauge(values, desc, c.ended, id, "ended")
}

// podsOf are numbers of pods by cluster.
type podsOf struct{ ofProvider, ofConsumer map[cluster.ID]podCounts }

// countPods counts the pods on virtual nodes, and those in twin namespaces.
func countPods(pods []corev1.Pod, nodes []corev1.Node, namespaces []corev1.Namespace) podsOf {
	provider, consumer := map[string]cluster.ID{}, map[string]cluster.ID{}
	for i := range nodes {
		if id := liqo.NodeCluster(&nodes[i]); id != "" {
			provider[nodes[i].Name] = id
		}
	}
	for i := range namespaces {
		if id, is := liqo.TwinOf(&namespaces[i]); is {
			consumer[namespaces[i].Name] = id
		}
	}
	counted := podsOf{ofProvider: map[cluster.ID]podCounts{}, ofConsumer: map[cluster.ID]podCounts{}}
	for i := range pods {
		pod := &pods[i]
		if id, on := provider[pod.Spec.NodeName]; on {
			counted.ofProvider[id] = counted.ofProvider[id].with(pod)
		}
		if id, of := consumer[pod.Namespace]; of {
			counted.ofConsumer[id] = counted.ofConsumer[id].with(pod)
		}
	}
	return counted
}

func gauge(values chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	values <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
