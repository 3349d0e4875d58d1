// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Configuration is the networks of this cluster and of a peer, in the tenant namespace of the peer.
//
// +kubebuilder:object:root=true
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ConfigurationSpec   `json:"spec,omitempty"`
	Status ConfigurationStatus `json:"status,omitempty"`
}

// ConfigurationSpec has the networks as their cluster knows them.
type ConfigurationSpec struct {
	// Local are those of this cluster; nil until Liqo has written them.
	Local *ClusterNetworks `json:"local,omitempty"`
	// Remote are those of the peer, and others that are reached through it.
	Remote ClusterNetworks `json:"remote,omitempty"`
}

// ConfigurationStatus has the networks as this cluster sees them.
type ConfigurationStatus struct {
	// Conditions has NetworkCIDRsConfigured once all networks are seen.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Remote are those of the spec, each at the same place in its list; empty where Liqo has not decided yet.
	Remote *ClusterNetworks `json:"remote,omitempty"`
}

// NetworkCIDRsConfigured is the condition of a Configuration whose networks are all seen.
const NetworkCIDRsConfigured = "NetworkCIDRsConfigured"

// ClusterNetworks are the networks of a cluster.
type ClusterNetworks struct {
	CIDR CIDRs `json:"cidr,omitempty"`
}

// CIDRs are networks by what has addresses in them: pods, and what a cluster opens to others.
type CIDRs struct {
	Pod      []string `json:"pod,omitempty"`
	External []string `json:"external,omitempty"`
}

// ConfigurationList is a list of Configurations.
//
// +kubebuilder:object:root=true
type ConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Configuration `json:"items"`
}

// Connection is the tunnel to a peer, in the tenant namespace of the peer. Liqo's gateway writes it.
//
// +kubebuilder:object:root=true
type Connection struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ConnectionSpec   `json:"spec,omitempty"`
	Status ConnectionStatus `json:"status,omitempty"`
}

// ConnectionSpec says which end of the tunnel is here.
type ConnectionSpec struct {
	// Type is Server where the tunnel is awaited, and Client where it is begun.
	Type string `json:"type"`
	// GatewayRef names the gateway.
	GatewayRef corev1.ObjectReference `json:"gatewayRef"`
}

// ConnectionStatus is how the tunnel is.
type ConnectionStatus struct {
	Value   ConnectionState   `json:"value,omitempty"`
	Latency ConnectionLatency `json:"latency,omitempty"`
}

// ConnectionState is whether a tunnel is up.
type ConnectionState string

// The states of a tunnel.
const (
	Connected       ConnectionState = "Connected"
	Connecting      ConnectionState = "Connecting"
	ConnectionError ConnectionState = "Error"
)

// ConnectionLatency is the round-trip time in a tunnel.
type ConnectionLatency struct {
	// Value is the time as Go writes a duration, or "N/A".
	Value string `json:"value,omitempty"`
	// Timestamp is when it was measured.
	Timestamp metav1.Time `json:"timestamp,omitempty"`
}

// ConnectionList is a list of Connections.
//
// +kubebuilder:object:root=true
type ConnectionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Connection `json:"items"`
}

// FirewallConfiguration is a table of nftables that Liqo keeps where its labels say. Of the rules of chains only those that filter are
// here.
//
// +kubebuilder:object:root=true
type FirewallConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FirewallConfigurationSpec   `json:"spec,omitempty"`
	Status FirewallConfigurationStatus `json:"status,omitempty"`
}

// FirewallConfigurationSpec is the table.
type FirewallConfigurationSpec struct {
	Table FirewallTable `json:"table"`
}

// FirewallTable is a table of nftables.
type FirewallTable struct {
	Name   *string         `json:"name"`
	Chains []FirewallChain `json:"chains"`
	// Family is that of the addresses: FamilyIPv4.
	Family *FirewallFamily `json:"family"`
}

// FirewallFamily is the family of addresses of a table.
type FirewallFamily string

// FamilyIPv4 is that of the addresses between peers.
const FamilyIPv4 FirewallFamily = "IPV4"

// FirewallChain is a chain of rules.
type FirewallChain struct {
	Name  *string       `json:"name"`
	Rules FirewallRules `json:"rules"`
	// Type is what its rules do: ChainFilter.
	Type FirewallChainType `json:"type"`
	// Policy is what becomes of a packet that no rule decides.
	Policy *FirewallChainPolicy `json:"policy"`
	// Hook is where packets pass it.
	Hook *FirewallHook `json:"hook"`
	// Priority orders it among other chains at the hook: lower ones are passed first, and the translation of destinations is at -100,
	// that of sources at 100.
	Priority *int32 `json:"priority"`
}

// FirewallChainType is what the rules of a chain do.
type FirewallChainType string

// ChainFilter lets packets pass, or not.
const ChainFilter FirewallChainType = "filter"

// FirewallChainPolicy is what becomes of a packet that no rule decides.
type FirewallChainPolicy string

// The policies of a chain.
const (
	PolicyAccept FirewallChainPolicy = "accept"
	PolicyDrop   FirewallChainPolicy = "drop"
)

// FirewallHook is where packets pass a chain.
type FirewallHook string

// The hooks that this project uses.
const (
	HookPrerouting  FirewallHook = "prerouting"
	HookForward     FirewallHook = "forward"
	HookPostrouting FirewallHook = "postrouting"
)

// FirewallRules are the rules of a chain.
type FirewallRules struct {
	Filter []FirewallRule `json:"filterRules,omitempty"`
}

// FirewallRule decides of the packets that match.
type FirewallRule struct {
	Name *string `json:"name,omitempty"`
	// Counter counts the packets.
	Counter bool `json:"counter"`
	// Match are what a packet has to match, all of them.
	Match  []FirewallMatch `json:"match"`
	Action FirewallAction  `json:"action"`
}

// FirewallAction is what becomes of a packet.
type FirewallAction string

// The actions that this project uses.
const (
	ActionAccept FirewallAction = "accept"
	ActionDrop   FirewallAction = "drop"
)

// FirewallMatch is one thing that a packet has to match.
type FirewallMatch struct {
	Op FirewallOperator `json:"op"`
	IP *FirewallIP      `json:"ip,omitempty"`
	// Dev is the device by which the packet comes or goes.
	Dev *FirewallDevice `json:"dev,omitempty"`
}

// FirewallOperator compares.
type FirewallOperator string

// The operators of a match.
const (
	OpEqual    FirewallOperator = "eq"
	OpNotEqual FirewallOperator = "neq"
)

// FirewallIP is an address, a network or a range of a packet.
type FirewallIP struct {
	Value string `json:"value"`
	// Position is which of the packet's addresses.
	Position FirewallPosition `json:"position"`
}

// FirewallPosition is which of a packet's addresses is meant.
type FirewallPosition string

// The positions of an address.
const (
	PositionSource      FirewallPosition = "src"
	PositionDestination FirewallPosition = "dst"
)

// FirewallDevice is a device by name.
type FirewallDevice struct {
	Value    string                 `json:"value"`
	Position FirewallDevicePosition `json:"position"`
}

// FirewallDevicePosition is whether a packet comes or goes by a device.
type FirewallDevicePosition string

// The positions of a device.
const (
	DeviceIn  FirewallDevicePosition = "in"
	DeviceOut FirewallDevicePosition = "out"
)

// FirewallConfigurationStatus is where the table is in force.
type FirewallConfigurationStatus struct {
	Conditions []FirewallCondition `json:"conditions,omitempty"`
}

// FirewallConditionType says of what a condition of a table is.
type FirewallConditionType string

// The conditions of a table.
const (
	FirewallApplied FirewallConditionType = "Applied"
	FirewallError   FirewallConditionType = "Error"
)

// FirewallCondition is whether the table is in force on a host.
type FirewallCondition struct {
	Host               string                 `json:"host"`
	Type               FirewallConditionType  `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty"`
}

// FirewallConfigurationList is a list of FirewallConfigurations.
//
// +kubebuilder:object:root=true
type FirewallConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FirewallConfiguration `json:"items"`
}
