// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grant says what contracts give to the clusters of buyers: no contract, no resources.
//
// It knows neither how contracts come about nor how Liqo is told.
package grant

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// ErrTaken means that a cluster is another party's.
var ErrTaken = errors.New("the cluster belongs to another party")

// Grant is what one contract gives to a cluster at one moment.
type Grant struct {
	// Contract is the contract's name.
	Contract string
	// Buyer is the party that has signed, and Cluster the cluster for which it has bought.
	Buyer   string
	Cluster cluster.ID
	// Resources are what was sold. What is not in force gives them as zero, so that a cluster that had them loses them.
	Resources corev1.ResourceList
	// InForce is false before the buyer may have anything, while the contract is suspended, and from its end on.
	InForce bool
}

// Book is the grants of all contracts. It does not change.
type Book struct {
	clusters map[cluster.ID]corev1.ResourceList
}

// NewBook returns the book of some grants, in which each cluster belongs to one party: the first of those that come for it in the order
// given, so contracts come in the order in which they were made. The error joins an [ErrTaken] for each that comes too late, which gives
// nothing.
func NewBook(grants []Grant) (*Book, error) {
	b := &Book{clusters: map[cluster.ID]corev1.ResourceList{}}
	owners := map[cluster.ID]string{}
	var late []error
	for _, g := range grants {
		if g.Cluster == "" {
			continue
		}
		if owner, owned := owners[g.Cluster]; owned && owner != g.Buyer {
			late = append(late, fmt.Errorf("contract %s for cluster %s of party %s: %w", g.Contract, g.Cluster, g.Buyer, ErrTaken))
			continue
		}
		owners[g.Cluster] = g.Buyer
		given := g.Resources
		if !g.InForce {
			given = resources.Scale(given, 0)
		}
		b.clusters[g.Cluster] = resources.Sum(b.clusters[g.Cluster], given)
	}
	return b, errors.Join(late...)
}

// Granted returns the sum of what contracts give to a cluster; nil if there never was one. It must not be changed.
func (b *Book) Granted(id cluster.ID) corev1.ResourceList { return b.clusters[id] }

// NodeOffers returns what a cluster is offered: one node with the sum of its contracts, or none if it never had one. It is what a
// resource plugin answers.
func (b *Book) NodeOffers(id cluster.ID) []capacity.NodeOffer {
	granted, known := b.clusters[id]
	if !known {
		return nil
	}
	return []capacity.NodeOffer{{Offered: granted}}
}

// Offers is what clusters are offered besides, because people let them in: a node of nothing, without which Liqo tells a cluster of none
// of the things that need no resources, such as Services that are reflected to it.
type Offers struct {
	*Book

	// LetIn is true for clusters that people have let in; those that have bought are offered that.
	LetIn map[cluster.ID]bool
}

// NodeOffers returns what a cluster is offered: what it has bought, a node of no cpu, memory and pods if it was let in, or none.
func (o Offers) NodeOffers(id cluster.ID) []capacity.NodeOffer {
	bought := o.Book.NodeOffers(id)
	if len(bought) > 0 || !o.LetIn[id] {
		return bought
	}
	return []capacity.NodeOffer{{Offered: corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}, corev1.ResourcePods: {}}}}
}
