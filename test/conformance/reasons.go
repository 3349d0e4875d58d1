// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// pageTop is how the page of results begins.
const pageTop = `# Kubernetes' conformance tests, with offloaded pods

<!-- Written by make test-conformance. -->

A workload should not be able to tell that it was offloaded. Kubernetes' own conformance tests (1.34) say how far that is so: they run
on the consumer of a federation with Liqo 0.9.4 three times, with pods that stay at home (local), that Liqo offloads to a provider
(one hop, with the virtual kubelet of this project on the consumer), and that go to the providers through the broker (two hops).
Namespaces have the same name everywhere (` + "`EnforceSameName`" + `, docs/networking.md). What failed was looked at a second time, by
itself.
`

// pageOf1 is what the page says of Liqo 1.2 besides.
const pageOf1 = `With Liqo 1.2.0 the same tests run in the same three ways. Virtual kubelets are Liqo's own there, on the consumer and on the
broker, and all traffic of pods that are two hops away goes through the broker ([what differs](liqo-1.md#what-differs-from-liqo-09)).
`

// A skip is tests that are not run.
type skip struct {
	// what they are, for people, and the expression that their names match.
	what, names string
	why         string
}

// skips are the tests of workloads that are not run.
var skips = []skip{
	{
		"[sig-apps] Daemon set, ControllerRevision", `Daemon set \[Serial\]|ControllerRevision \[Serial\]`,
		"A pod of a DaemonSet belongs to its node, and is never offloaded.",
	},
	{
		"[sig-node] NoExecuteTaintManager, Node Lifecycle", `NoExecuteTaintManager|Node Lifecycle`,
		"They change nodes, and no pods.",
	},
	{
		"[sig-network] HostPort, node-pod communication", `HostPort|node-pod communication`,
		"They pin pods to a host, or have them use its network, which no other cluster gives away.",
	},
	{
		"[sig-node] RuntimeClass with a handler", `RuntimeClass should schedule`,
		"They need a runtime class that is set up on each node.",
	},
	{
		"[sig-storage] EmptyDir wrapper volumes (Serial)", `EmptyDir wrapper volumes should not cause race condition`,
		"It pins its pods to a node of this cluster.",
	},
	{
		"[sig-node] Kubelet when scheduling a read only busybox container", `Kubelet when scheduling a read only busybox container`,
		"It compares a message of busybox's shell, and the images here, which are made of Debian's programs, have bash.",
	},
}

// skipped returns an expression that matches the names of the tests that are not run.
func skipped() string {
	var all []string
	for _, s := range skips {
		all = append(all, s.names)
	}
	return strings.Join(all, "|")
}

// A reason is why tests fail.
type reason struct {
	// names is an expression that the names of the tests match.
	names *regexp.Regexp
	// liqo and distance are where that is so; if they are empty, with each release, and at each distance.
	liqo, distance string
	why            string
}

// reasons are why tests fail. The first one that fits counts.
var reasons = []reason{
	{
		names: regexp.MustCompile(`execute (poststart|prestop) http hook`), liqo: "1.2.0",
		why: "The hook names the address of a pod. Liqo's own virtual kubelet passes it on as it is written, and where the pod runs it is " +
			"that of nobody, or of somebody else.",
	},
	{
		names: regexp.MustCompile(`Pods should allow activeDeadlineSeconds to be updated`), liqo: "1.2.0",
		why: "Liqo's own virtual kubelet passes on the deadline with which a pod is created, and no change of it.",
	},
	{
		names: regexp.MustCompile(`pod failure policy to ignore failure matching on DisruptionTarget`), liqo: "1.2.0", distance: "one-hop",
		why: "Its pods are evicted. Liqo's own virtual kubelet takes all conditions of a pod from the provider, also when that one knows of no " +
			"eviction, so that the Job counts a failure.",
	},
	{
		names: regexp.MustCompile(`Should recreate evicted statefulset`), liqo: "1.2.0", distance: "one-hop",
		why: "Its pod names its node, where another one has its port. A kubelet refuses such a pod, and Liqo's own virtual kubelet does not.",
	},
	{
		names: regexp.MustCompile(`ServiceAccountIssuerDiscovery|ServiceAccounts should mount an API token`), liqo: "1.2.0", distance: "two-hops",
		why: "With Liqo 1.x a pod that is two hops away has no access to the API server of its own cluster (docs/liqo-1.md).",
	},
	{
		names: regexp.MustCompile(`ServiceAccountIssuerDiscovery`), liqo: "1.2.0", distance: "one-hop",
		why: "Where the pod runs, Liqo's own virtual kubelet has `kubernetes.default` and `kubernetes.default.svc` mean the API server of the " +
			"pod's own cluster, and not the name in full, which the test asks.",
	},
	{
		names: regexp.MustCompile(`Services should (serve|have session affinity|be able to switch|be able to change the type|` +
			`be able to create a functioning NodePort)|EndpointSlice should support a Service with multiple`),
		why: "The pod that tries the Service calls it by its cluster IP, or the address of a node, as a number. Where it runs, the Service has " +
			"another cluster IP; by its name it works.",
	},
	{
		names: regexp.MustCompile(`DNS should (provide DNS for (services|ExternalName)|resolve DNS of partial)`),
		why: "Where the pod runs, all names of the Service are found, and lead to it. The test also looks for the name of the cluster IP that " +
			"the Service has at home, or for that cluster IP in the answer.",
	},
	{
		names: regexp.MustCompile(`Ephemeral Containers`),
		why: "A stock Liqo provider lets no other cluster change a running pod. A debug container is recorded and never starts; " +
			"`kubectl exec` works.",
	},
	{
		names: regexp.MustCompile(`Guestbook application|execute (poststart|prestop) exec hook|PreStop should call prestop` +
			`|intra-pod communication`),
		why: "A pod gets the address of another one as text, from that pod, in its command or in a request. An address is good in one " +
			"cluster; pods of several find each other by Services.",
	},
	{
		names: regexp.MustCompile(`execute (poststart|prestop) http hook`),
		why: "A hook that names a pod's address works where both pods run on one provider, or the provider is peered with that pod's cluster " +
			"(docs/pods.md). An event `HostNotReachable` says where it does not.",
	},
	{
		names:    regexp.MustCompile(`Job should allow to use (a|the) pod failure policy|Should recreate evicted statefulset`),
		distance: "two-hops",
		why: "Its pods use the disk or a port of their node (`hostPath`, `hostPort`), which a broker refuses from strangers. With " +
			"`--pod-security=privileged` it admits them (docs/placement/isolation.md).",
	},
	{
		names: regexp.MustCompile(`KubeletManagedEtcHosts`),
		why: "Its second pod asks for the network of its host. Liqo gives an offloaded pod one of its own, so that no consumer's pod is in the " +
			"network of a provider's node.",
	},
}

// explanation returns why a test fails at a place, or nothing.
func explanation(at place, name string) string {
	for _, r := range reasons {
		if r.names.MatchString(name) && (r.liqo == "" || r.liqo == at.liqo) && (r.distance == "" || r.distance == at.distance) {
			return r.why
		}
	}
	return ""
}
