// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/capacitorset/liqo-broker/test/lab/process"
	"github.com/capacitorset/liqo-broker/test/lab/wan"
)

// statusPatience is how long one cluster may take to tell its state. On a machine that builds something meanwhile, each of four
// questions takes some seconds.
const statusPatience = 30 * time.Second

// ClusterStatus is what can be seen of one cluster.
type ClusterStatus struct {
	Name string
	// Running reports whether the node's init lives, and LinkUp whether its link to the WAN is whole.
	Running, LinkUp bool
	// CutFrom are the clusters to which the link is cut, while that to the WAN may be whole.
	CutFrom []string
	// Nodes are the ready nodes; virtual ones are named liqo-PROVIDER.
	Nodes []string
	// PodsReady of Pods all pods that should run are ready.
	Pods, PodsReady int
	// Peers are the clusters that this one is a consumer of, with an established peering.
	Peers []string
	// Problem is the reason why the rest is missing, or empty.
	Problem string
}

// Status looks at all clusters at the same time.
func (l *Lab) Status(ctx context.Context) []ClusterStatus {
	clusters := l.Clusters()
	all := make([]ClusterStatus, len(clusters))
	var wait sync.WaitGroup
	for i, c := range clusters {
		wait.Go(func() { all[i] = c.status(ctx) })
	}
	wait.Wait()
	return all
}

func (c *Cluster) status(ctx context.Context) ClusterStatus {
	s := ClusterStatus{Name: c.Name}
	init, err := c.pid1()
	if err != nil {
		s.Problem = "it was not started"
		return s
	}
	if s.Running = init.Alive(); !s.Running {
		s.Problem = "its node does not run"
		return s
	}
	if w, err := c.lab.wan(); err == nil {
		s.LinkUp, _ = w.LinkUp(c.Name)
	}
	s.CutFrom = c.cutFrom(ctx, init)
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	if err := s.look(ctx, c); err != nil {
		s.Problem = err.Error()
	}
	return s
}

// cutFrom returns the clusters to which Lab.SetLink cut the link.
func (c *Cluster) cutFrom(ctx context.Context, init process.ID) []string {
	var from []string
	end := wan.End{Init: init, Address: c.Address}
	for _, other := range c.lab.Clusters() {
		if loses, err := end.Loses(ctx, other.Address); err == nil && loses {
			from = append(from, other.Name)
		}
	}
	return from
}

// ready is a JSONPath filter for objects with the condition Ready.
const ready = `?(@.type=="Ready")`

// foreignClusters returns, by the group of Liqo's kind in a line of its versions, the JSONPath for names of clusters and what they are to
// this one.
func foreignClusters() map[string]string {
	return map[string]string{
		"discovery.liqo.io": `jsonpath={range .items[*]}{.metadata.name} {.status.peeringConditions[?(@.type=="OutgoingPeering")].status}{"\n"}{end}`,
		"core.liqo.io":      `jsonpath={range .items[*]}{.metadata.name} {.status.role}{"\n"}{end}`,
	}
}

func (s *ClusterStatus) look(ctx context.Context, c *Cluster) error {
	nodes, err := c.Kubectl(ctx, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.conditions[`+ready+
		`].status}{"\n"}{end}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(nodes) {
		if name, state, _ := strings.Cut(strings.TrimSpace(line), " "); state == "True" {
			s.Nodes = append(s.Nodes, name)
		}
	}
	pods, err := c.Kubectl(ctx, "get", "pods", "-A", "--field-selector=status.phase!=Succeeded", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.conditions[`+ready+`].status}{"\n"}{end}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(pods) {
		s.Pods++
		if strings.HasSuffix(strings.TrimSpace(line), " True") {
			s.PodsReady++
		}
	}
	// Before Liqo is installed there are no foreign clusters to ask for.
	var query string
	ask := []string{"get", "crds", "--ignore-not-found", "-o", "name"}
	for group := range foreignClusters() {
		ask = append(ask, "foreignclusters."+group)
	}
	defined, err := c.Kubectl(ctx, ask...)
	if err != nil {
		return err
	}
	for group, path := range foreignClusters() {
		if strings.Contains(defined, "foreignclusters."+group) {
			query = path
		}
	}
	if query == "" {
		return nil
	}
	peers, err := c.Kubectl(ctx, "get", "foreignclusters", "-o", query)
	if err != nil {
		return err
	}
	for line := range strings.Lines(peers) {
		switch name, state, _ := strings.Cut(strings.TrimSpace(line), " "); state {
		case "Established", "Provider", "ConsumerAndProvider":
			s.Peers = append(s.Peers, name)
		}
	}
	return nil
}
