// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile is a peer that means no good: it has the identity that Liqo gave it at a
// broker, or at the other side of a contract, knows what a peer can know, and tries what a
// peer must not achieve.
//
// It knows neither how the broker defends itself nor how the federation it is in was made. What it tries where Liqo 1.x runs are rows,
// which say who is to refuse it.
package hostile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Peer is a cluster that peers with the broker.
type Peer struct {
	ID cluster.ID
	// Tenant is the peer's tenant namespace on the broker.
	Tenant string
	// Twin is the twin on the broker of one of the peer's namespaces; empty if it has none.
	Twin string

	// Broker and Victim are the broker and another peer of it, with the victim's tenant
	// namespace.
	Broker, Victim cluster.ID
	VictimTenant   string
	// Node is one of the broker's own nodes.
	Node string

	caller
}

// Connect gives a peer its access to the broker's API server, with the identity that Liqo
// gave it there.
func (p *Peer) Connect(config *rest.Config, identity map[string][]byte) error {
	if err := p.connect(certified(config, identity["certificate"], identity["private-key"])); err != nil {
		return fmt.Errorf("reach the broker's API server as %s: %w", p.ID, err)
	}
	return nil
}

// What the API server answers: for want of a right, for Liqo's own admission webhook, and for
// an admission webhook or policy of this project.
const (
	NoRight = "cannot"
	byLiqo  = "shadowpod.validate.liqo.io"
	refused = "denied"
	// confined is what becomes of a Service that wants more than a peer gets.
	confined = "has become one for pods alone"
)

// Attempt is something that a peer must not achieve.
type Attempt struct {
	// Name says what is tried, and Gain what would be won.
	Name, Gain string
	// Got is part of the answer that keeps the peer from it.
	Got string
	// Try tries, and returns the answer; nil if it succeeded.
	Try func(context.Context) error
}

// LiqoLets reports whether it succeeds where there is Liqo alone.
func (a Attempt) LiqoLets() bool { return a.Got != NoRight && a.Got != byLiqo }

// TryAll makes attempts, and returns the names of those that succeeded, with an error for each answer that is not the one of its attempt.
// Answers of which also is true are right for all of them; it can be nil.
func TryAll(ctx context.Context, attempts []Attempt, also func(error) bool) (could []string, err error) {
	var errs []error
	for _, a := range attempts {
		switch got := a.Try(ctx); {
		case got == nil:
			could = append(could, a.Name)
		case strings.Contains(got.Error(), a.Got), also != nil && also(got):
		default:
			errs = append(errs, fmt.Errorf("who tries to %s, which gives it %s, is not told %q: %w", a.Name, a.Gain, a.Got, got))
		}
	}
	return could, errors.Join(errs...)
}

// Attempts are what the peer tries at the broker's API server: as one that provides, and as
// one that consumes if it has a twin namespace.
func (p *Peer) Attempts() []Attempt {
	replicated := map[string]any{"liqo.io/replicated": "true", "liqo.io/originID": string(p.ID), "liqo.io/remoteID": string(p.Broker)}
	with := func(more map[string]any) map[string]any {
		labels := map[string]any{}
		for _, from := range []map[string]any{replicated, more} {
			maps.Copy(labels, from)
		}
		return labels
	}
	offer := func(owner cluster.ID, cpu any, labels map[string]any) map[string]any {
		return map[string]any{"clusterId": string(owner), "labels": labels, "resourceQuota": map[string]any{"hard": map[string]any{"cpu": cpu}}}
	}
	attempts := []Attempt{
		{"read the Secrets of namespace liqo", "the identities of all peers", NoRight, p.list("v1", "Secret", "liqo")},
		{"read the Secrets of the victim's tenant namespace", "the broker's identity there", NoRight, p.list("v1", "Secret", p.VictimTenant)},
		{"read all pods", "what all consumers run", NoRight, p.list("v1", "Pod", "")},
		{"read the Providers", "who they are", NoRight, p.list("brokering.liqo.io/v1alpha1", "Provider", "")},
		{
			"read the webhook configurations", "their certificates", NoRight,
			p.list("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", ""),
		},
		{"create a namespace that counts as the victim's", "pods there", NoRight, p.create("v1", "Namespace", "", nil, nil)},
		{"write into the victim's tenant namespace", "to speak for the victim", NoRight,
			p.create("sharing.liqo.io/v1alpha1", "ResourceOffer", p.VictimTenant, replicated, offer(p.Victim, "1", nil))},
		{"offer resources in the victim's name", "to take its place, or turn it off", refused,
			p.create("sharing.liqo.io/v1alpha1", "ResourceOffer", p.Tenant, replicated, offer(p.Victim, "1000", nil))},
		{"offer with the victim's cluster ID as a label", "the victim's pods and Secrets", refused,
			p.create("sharing.liqo.io/v1alpha1", "ResourceOffer", p.Tenant, replicated,
				offer(p.ID, "1", map[string]any{"liqo.io/remote-cluster-id": string(p.Victim)}))},
		{"offer what looks like the broker's offer to the victim", "virtual nodes at the victim", refused,
			p.create("sharing.liqo.io/v1alpha1", "ResourceOffer", p.Tenant,
				map[string]any{"liqo.io/replication": "true", "liqo.io/remoteID": string(p.Victim)}, offer(p.Broker, "1", nil))},
		{"map namespaces in the direction of the victim", "the victim's relay addresses", refused,
			p.create("virtualkubelet.liqo.io/v1alpha1", "NamespaceMap", p.Tenant,
				with(map[string]any{"liqo.io/remote-cluster-id": string(p.Victim)}), map[string]any{"desiredMapping": map[string]any{}})},
		{"map namespaces as the broker's own map does", "no namespace of anybody is offloaded any more", refused,
			p.create("virtualkubelet.liqo.io/v1alpha1", "NamespaceMap", p.Tenant,
				map[string]any{"liqo.io/replication": "true", "liqo.io/remoteID": "made-up"},
				map[string]any{"desiredMapping": map[string]any{"kube-system": "loot"}})},
		{"configure the network of the victim", "its tunnel", refused,
			p.create("net.liqo.io/v1alpha1", "NetworkConfig", p.Tenant, replicated,
				map[string]any{
					"cluster": map[string]any{"clusterID": string(p.Victim), "clusterName": "victim"}, "podCIDR": "10.0.0.0/16",
					"externalCIDR": "10.1.0.0/16", "endpointIP": "1.2.3.4", "backendType": "wireguard", "backend_config": map[string]any{},
				})},
		{"ask for resources in the victim's name", "a peering of the victim", refused,
			p.create("discovery.liqo.io/v1alpha1", "ResourceRequest", p.Tenant, replicated,
				map[string]any{
					"clusterIdentity": map[string]any{"clusterID": string(p.Victim), "clusterName": "victim"}, "authUrl": "https://192.0.2.1",
				})},
	}
	pod := func(more map[string]any) map[string]any {
		spec := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "lab.local/web:1"}}}
		maps.Copy(spec, more)
		return map[string]any{"pod": spec}
	}
	origin := map[string]any{"virtualkubelet.liqo.io/origin": string(p.ID), "virtualkubelet.liqo.io/destination": string(p.Broker)}
	wish := func(namespace string, labels map[string]any, more map[string]any) func(context.Context) error {
		return p.create("virtualkubelet.liqo.io/v1alpha1", "ShadowPod", namespace, labels, pod(more))
	}
	attempts = append(attempts, Attempt{"ask for a pod in kube-system", "root on the broker", NoRight, wish("kube-system", origin, nil)})
	if p.Twin == "" {
		return attempts
	}
	return append(attempts,
		Attempt{"create a pod past Liqo", "a pod on the broker", NoRight, p.create("v1", "Pod", p.Twin, nil, pod(nil)["pod"].(map[string]any))},
		Attempt{"ask for a pod in the victim's name", "the victim's pods", byLiqo,
			wish(p.Twin, map[string]any{"virtualkubelet.liqo.io/origin": string(p.Victim)}, nil)},
		Attempt{"ask for a pod on a node of the broker", "root on the broker", refused, wish(p.Twin, origin, map[string]any{"nodeName": p.Node})},
		Attempt{"ask for a pod with the root of its node", "root on a node", refused,
			wish(p.Twin, origin, map[string]any{"volumes": []any{map[string]any{"name": "host", "hostPath": map[string]any{"path": "/"}}}})},
		Attempt{"ask for a pod in its node's network", "ports of the node", refused, wish(p.Twin, origin, map[string]any{"hostNetwork": true})},
		Attempt{"ask for a pod that is more important than all others", "the room of others", refused,
			wish(p.Twin, origin, map[string]any{"priorityClassName": "system-node-critical"})},
		Attempt{"ask for a pod with which no pod of others runs", "the room of others", refused,
			wish(p.Twin, origin, map[string]any{"affinity": apart(map[string]any{"namespaceSelector": map[string]any{}})})},
		Attempt{"ask for a pod that is larger than all that it is offered", "cores that it has not bought", refused,
			wish(p.Twin, origin, map[string]any{"containers": []any{map[string]any{
				"name": "main", "image": "lab.local/web:1", "resources": map[string]any{"requests": map[string]any{"cpu": "10k"}},
			}}})},
		Attempt{"take an address for a Service", "what the nodes send to that address", refused,
			p.create("v1", "Service", p.Twin, nil, map[string]any{
				"externalIPs": []any{"198.51.100.7"}, "ports": []any{map[string]any{"port": int64(443)}},
			})},
		Attempt{"take a port of the nodes for a Service", "what comes to that port of any node", confined, p.service("NodePort")},
		Attempt{"take a load balancer for a Service", "an address that the cluster pays for", confined, p.service("LoadBalancer")},
		Attempt{"have a Service with a cluster IP of its choice", "what goes to a Service to come", readdressed, p.address(p.Twin, true)},
		Attempt{"offload the twin namespace", "pods at providers that no policy chose", NoRight,
			p.create("offloading.liqo.io/v1alpha1", "NamespaceOffloading", p.Twin, nil, map[string]any{})},
		Attempt{
			"lift the quota of the twin namespace", "what belongs to all", NoRight, p.create("v1", "ResourceQuota", p.Twin, nil, map[string]any{}),
		},
	)
}

// service tries to create a Service of a type in the twin namespace.
func (p *Peer) service(kind string) func(context.Context) error {
	return func(ctx context.Context) error {
		object := named("v1", "Service", p.Twin, "")
		object.SetGenerateName("hostile-")
		object.Object["spec"] = map[string]any{"type": kind, "ports": []any{map[string]any{"port": int64(443)}}}
		if err := p.tryCreate(ctx, object); err != nil {
			return err
		}
		// Without a right to more, it is created all the same.
		is, _, err := unstructured.NestedString(object.Object, "spec", "type")
		if err == nil && is == "ClusterIP" {
			err = errors.New("the Service " + confined)
		}
		return err
	}
}

// Report is a table of attempts and answers, in Markdown.
func Report(attempts []Attempt) string {
	var table strings.Builder
	table.WriteString("| what was tried | to get | what it got |\n|---|---|---|\n")
	for _, a := range attempts {
		got := "refused by admission"
		switch a.Got {
		case NoRight:
			got = "no right to it"
		case byLiqo:
			got = "refused by Liqo itself"
		case confined:
			got = "a Service for pods alone"
		case readdressed:
			got = "a Service with another cluster IP"
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", a.Name, a.Gain, got)
	}
	return table.String()
}
