// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import "context"

// line is a line of Liqo's versions, as far as clusters with it look otherwise from outside than those with other lines, or come to know
// each other otherwise.
type line interface {
	traits() Traits
	// gateway is the program on a cluster that holds its tunnel to another one.
	gateway(c, other *Cluster) Process
	// credentials reads by what a peer shows a broker who it is.
	credentials(ctx context.Context, peer, broker *Cluster) (*Credentials, error)
	// peering is how the federation's clusters come to know each other and the broker.
	peering(f *Federation, progress *Progress) step
	// parted returns an error while a consumer still removes what it knows of a provider whose peering has ended.
	parted(ctx context.Context, consumer, provider *Cluster) error
}

// Traits are by what clusters with a line of Liqo's versions differ for who looks at them.
type Traits struct {
	// ForeignClusters is the group and version of these, and ClusterLabel their label with the ID of the cluster that they are about.
	ForeignClusters, ClusterLabel string
	// ShadowPods is the group and version of these. The group is also that of their labels.
	ShadowPods string
	// IDInTwins is whether the names of twins of namespaces end with a part of the ID of the cluster where they are from, after its name.
	IDInTwins bool
	// KubeletLabel is the label of pods that is "virtual-kubelet" for those of virtual kubelets.
	KubeletLabel string
	// OurKubelets is whether the virtual kubelets of brokers and of their consumers are of this project.
	OurKubelets bool
	// ProviderLabels is whether nodes of single providers have all labels of their providers.
	ProviderLabels bool
	// Fenced is whether the gateways of brokers let nothing of peers pass to the brokers' own pods, which a transit has them do.
	Fenced bool
	// OneGateway is whether one gateway holds the tunnels to all peers.
	OneGateway bool

	// offloadings is the group and version of NamespaceOffloadings.
	offloadings string
	// nodes is what the names of nodes for other clusters begin with, before the name of the cluster.
	nodes string
}

// Credentials are by what a cluster shows a broker who it is.
type Credentials struct {
	// Data is what Liqo keeps of them in a Secret.
	Data map[string][]byte
	// Certificate and Key are as PEM what is shown to the broker's API server.
	Certificate, Key []byte
}

// line returns the one that runs on the cluster.
func (c *Cluster) line() line {
	if c.Line.HasPlugin() {
		return line09{}
	}
	return line1{}
}

// Traits returns those of the line that runs on the cluster.
func (c *Cluster) Traits() Traits { return c.line().traits() }

// NodeName returns what the one node is called that stands for the cluster in others.
func (c *Cluster) NodeName() string { return c.Traits().nodes + c.Name }

// OffloadingAPI returns the group and version of NamespaceOffloadings on the cluster.
func (c *Cluster) OffloadingAPI() string { return c.Traits().offloadings }

// CredentialsAt returns by what the cluster shows a broker who it is, with which it peers.
func (c *Cluster) CredentialsAt(ctx context.Context, broker *Cluster) (*Credentials, error) {
	return broker.line().credentials(ctx, c, broker)
}
