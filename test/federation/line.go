// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// line is a line of Liqo's versions, as far as clusters with it look otherwise from outside than those with other lines, or come to know
// each other otherwise.
type line interface {
	peered
	served
	traits() Traits
}

// peered is how clusters come to know each other, and part.
type peered interface {
	// gateway is the program on a cluster that holds its tunnel to another one.
	gateway(c, other *Cluster) Process
	// credentials reads by what a peer shows a broker who it is.
	credentials(ctx context.Context, peer, broker *Cluster) (*Credentials, error)
	// peering is how the federation's clusters come to know each other and the broker.
	peering(f *Federation, progress *Progress) step
	// parted returns an error while a consumer still removes what it knows of a provider whose peering has ended.
	parted(ctx context.Context, consumer, provider *Cluster) error
}

// served is how a broker serves its consumer.
type served interface {
	// stations are those of a consumer with one node for the broker, but for the node itself.
	stations(f *Federation) []station
	viewsAcknowledged(ctx context.Context, f *Federation) error
	// endNodes removes what keeps the consumer's nodes of single providers, if the consumer does not give them up by itself.
	endNodes(ctx context.Context, f *Federation) error
	quotaUser(ctx context.Context, f *Federation) (string, error)
	relays(ctx context.Context, f *Federation) (int, error)
}

// A Trait is what clusters with one line of Liqo's versions have, and those with the other one lack.
type Trait string

// Traits, called as they are in Go.
const (
	// Agents is that an agent of this project tells the broker what its consumer runs, and lists for that what it reaches. It comes with
	// Federation.Prepare.
	Agents Trait = "Agents"
	// CommandsOfPages is that the commands are for the line that stand in pages and in no journey.
	CommandsOfPages Trait = "CommandsOfPages"
	// DirectPaths is that consumers which are peered with a provider reach its pods past the broker.
	DirectPaths Trait = "DirectPaths"
	// ExitCodes is that virtual kubelets pass on with what a program exits.
	ExitCodes Trait = "ExitCodes"
	// Fenced is that the gateways of brokers let nothing of peers pass to the brokers' own pods, which a transit has them do.
	Fenced Trait = "Fenced"
	// GatewayShare is that the gateway of a broker gets a share of the processors, by which a busy node is not in its way.
	GatewayShare Trait = "GatewayShare"
	// HeldGoals is that a broker which is slower than its goals is wrong. Otherwise people are told.
	HeldGoals Trait = "HeldGoals"
	// HostilePeers is that journeys have peers that mean no good. Otherwise test/stock has some.
	HostilePeers Trait = "HostilePeers"
	// IDInTwins is that the names of twins of namespaces end with a part of the ID of the cluster where they are from, after its name.
	IDInTwins Trait = "IDInTwins"
	// JoinPeers is that clusters peer by `kubectl liqo-broker join`.
	JoinPeers Trait = "JoinPeers"
	// KubeletsAskIPAM is that virtual kubelets ask Liqo's IPAM for addresses.
	KubeletsAskIPAM Trait = "KubeletsAskIPAM"
	// LetIn is that a peer consumes only if the broker's record of it says so.
	LetIn Trait = "LetIn"
	// LiqoctlPeers is that clusters peer by liqoctl alone.
	LiqoctlPeers Trait = "LiqoctlPeers"
	// LiveOffers is that what providers offer follows what they have and want to share.
	LiveOffers Trait = "LiveOffers"
	// OneGateway is that one gateway holds the tunnels to all peers.
	OneGateway Trait = "OneGateway"
	// OurKubelets is that the virtual kubelets of brokers and of their consumers are of this project.
	OurKubelets Trait = "OurKubelets"
	// PreparedBrokers is that brokers have what `kubectl liqo-broker unprepare` would remove.
	PreparedBrokers Trait = "PreparedBrokers"
	// ProviderLabels is that nodes of single providers have all labels of their providers.
	ProviderLabels Trait = "ProviderLabels"
	// RefusesClaims is that no pod with a claim of dynamic resource allocation comes to be in a namespace that is offloaded.
	RefusesClaims Trait = "RefusesClaims"
	// RemoteIPAM is that consumers ask the broker by which addresses they reach pods through it.
	RemoteIPAM Trait = "RemoteIPAM"
	// SilentGateways is that a broker takes a provider for lost whose gateway says nothing.
	SilentGateways Trait = "SilentGateways"
	// Storage is that Liqo's storage is tried.
	Storage Trait = "Storage"
	// TokensPass is that pods elsewhere get tokens for the API server of their own cluster.
	TokensPass Trait = "TokensPass"
	// Trade is that clusters which do not know each other peer by contracts.
	Trade Trait = "Trade"
	// TwinsOfLiqo is that namespace liqo of a cluster may have twins at others.
	TwinsOfLiqo Trait = "TwinsOfLiqo"
	// Usage is that what pods elsewhere use is passed on.
	Usage Trait = "Usage"
)

// Traits are by what clusters with a line of Liqo's versions differ for who looks at them.
type Traits struct {
	// Lacks has why there is none, for people, of each Trait that the other line has.
	Lacks map[Trait]string
	// ForeignClusters is the group and version of these, and ClusterLabel their label with the ID of the cluster that they are about.
	ForeignClusters, ClusterLabel string
	// ShadowPods is the group and version of these and of VirtualNodes. The group is also that of the labels of ShadowPods.
	ShadowPods string
	// KubeletLabel is the label of pods that is "virtual-kubelet" for those of virtual kubelets.
	KubeletLabel string
	// Kinds are those of which brokers and their consumers make objects with this line alone.
	Kinds []schema.GroupVersionKind

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

// Has reports whether the line that runs on the cluster has a trait.
func (c *Cluster) Has(trait Trait) bool { return c.Traits().Lacks[trait] == "" }

// NodeName returns what the one node is called that stands for the cluster in others.
func (c *Cluster) NodeName() string { return c.Traits().nodes + c.Name }

// OffloadingAPI returns the group and version of NamespaceOffloadings on the cluster.
func (c *Cluster) OffloadingAPI() string { return c.Traits().offloadings }

// CredentialsAt returns by what the cluster shows a broker who it is, with which it peers.
func (c *Cluster) CredentialsAt(ctx context.Context, broker *Cluster) (*Credentials, error) {
	return broker.line().credentials(ctx, c, broker)
}

// ViewsAcknowledged fails unless the agent of the consumer, if there are agents, has acknowledged the views that the broker tells it of,
// and no others.
func (f *Federation) ViewsAcknowledged(ctx context.Context) error {
	return f.Broker.line().viewsAcknowledged(ctx, f)
}

// EndNodes has the consumer's nodes of single providers go, of which the broker grants no more: some go by themselves.
func (f *Federation) EndNodes(ctx context.Context) error { return f.Broker.line().endNodes(ctx, f) }

// QuotaUser returns the user of the consumer whose pods Liqo counts on the broker.
func (f *Federation) QuotaUser(ctx context.Context) (string, error) {
	return f.Broker.line().quotaUser(ctx, f)
}

// Relays returns how many addresses the broker has for pods of others.
func (f *Federation) Relays(ctx context.Context) (int, error) { return f.Broker.line().relays(ctx, f) }
