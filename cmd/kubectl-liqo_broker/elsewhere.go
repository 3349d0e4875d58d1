// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// elsewhereError says that a cluster is no broker's, what it is instead, and whom to ask.
type elsewhereError struct {
	says  string
	cause error
}

func (e *elsewhereError) Error() string { return e.says }

func (e *elsewhereError) Unwrap() error { return e.cause }

// onBroker returns an error of reading what only brokers have. Where the cluster knows none of it, because it consumes or provides, the
// error says so instead.
func (s *session) onBroker(ctx context.Context, c client.Client, err error) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	of, ways, errWays := waysOf(ctx, c)
	if of == nil {
		return err
	}
	// Who may not read the peers sees IDs of brokers, and no providers.
	peers, errPeers := of.Reader(c, "").Peers(ctx)
	if errPeers != nil {
		peers = nil
	}
	if brokers, errNodes := brokersOf(ctx, c, ways, peers); errWays == nil && errNodes == nil && len(brokers) > 0 {
		return &elsewhereError{fmt.Sprintf("%s is a consumer: its broker %s decides where its pods run, and only the broker knows why. Look "+
			"here with: kubectl liqo-broker where; why a pod waits is in its events: kubectl describe pod -n NAMESPACE POD; for the rest, ask the "+
			"administrator of the broker for: kubectl liqo-broker explain NAMESPACE", s.where(), strings.Join(brokers, " and ")), err}
	}
	if slices.ContainsFunc(peers, func(p liqo.Peer) bool { return p.Incoming.Exists }) {
		return &elsewhereError{fmt.Sprintf("%s only provides: this is asked on the broker. Whether all is well here says: "+
			"kubectl liqo-broker diagnose", s.where()), err}
	}
	return err
}

// brokersOf returns what people call the brokers whose virtual nodes a cluster has. One that is none of the peers is called by its ID.
func brokersOf(ctx context.Context, c client.Client, ways *liqo.Ways, peers []liqo.Peer) ([]string, error) {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes, virtualNodes()); err != nil {
		return nil, listed("nodes", err)
	}
	var brokers []string
	for i := range nodes.Items {
		if !ways.IsOfBroker(&nodes.Items[i]) {
			continue
		}
		broker := cluster.Identity{ID: liqo.NodeCluster(&nodes.Items[i])}
		for n := range peers {
			if peers[n].ID == broker.ID {
				broker = peers[n].Identity
			}
		}
		brokers = append(brokers, broker.String())
	}
	slices.Sort(brokers)
	return slices.Compact(brokers), nil
}
