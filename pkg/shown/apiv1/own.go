// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import "github.com/capacitorset/liqo-broker/pkg/core/addressing"

// What follows is what a consumer may see of itself. If it must not learn of the providers, what it gets is made of a list of
// fields, so that one that is added is not shown by accident.

// Own returns what the consumer sees of itself.
func (c Consumer) Own(hides bool) Consumer {
	if !hides {
		return c
	}
	own := Consumer{
		Cluster: c.Cluster, Mode: c.Mode, Scheduling: c.Scheduling, Ready: c.Ready, Reason: c.Reason, Nodes: c.Nodes,
		Reserved: c.Reserved, Limit: c.Limit, Share: c.Share, Offered: c.Offered, Used: c.Used, Created: c.Created,
	}
	for _, condition := range c.Conditions {
		condition.Message = ""
		own.Conditions = append(own.Conditions, condition)
	}
	return own
}

// Own returns what the consumer sees of its offer.
func (o Offer) Own(hides bool) Offer {
	if !hides {
		return o
	}
	return Offer{Consumer: o.Consumer, Offered: o.Offered, Granted: o.Granted, Used: o.Used}
}

// Own returns what the consumer sees of its pod.
func (w Workload) Own(hides bool) Workload {
	if !hides {
		// Policies are the broker's, and what the scheduler says is of all its nodes.
		w.Policy, w.Why = "", ""
		return w
	}
	own := Workload{
		Consumer: w.Consumer, Namespace: w.Namespace, BrokerNamespace: w.BrokerNamespace, Pod: w.Pod, Status: w.Status, Ready: w.Ready,
		Since: w.Since, Requests: w.Requests,
	}
	if w.Path != "" {
		own.Path = addressing.PathRelay.String()
	}
	return own
}

// Own returns what the consumer sees of its advice.
func (a Advice) Own(hides bool) Advice {
	if !hides {
		// Policies are the broker's, and may be called after others.
		peers := make([]Peer, len(a.Peers))
		for i, peer := range a.Peers {
			peer.Policies = nil
			peers[i] = peer
		}
		a.Peers = peers
		return a
	}
	return Advice{Consumer: a.Consumer, Done: true, Message: adviceHidden, Peers: []Peer{}}
}
