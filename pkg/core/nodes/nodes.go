// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes decides, on a consumer with Liqo 1.x, for which nodes of single providers it asks a broker, and which of them it gives up.
//
// It decides on values and remembers nothing: what it has to know again is in [Plan]. It knows neither how the broker tells of nodes, nor
// how it is asked for one.
package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
)

const (
	// MaxNodes is how many nodes a broker may have a consumer ask for: each is a virtual kubelet there.
	MaxNodes = 64
	// settle is how long a broker must not have wanted a node before it is given up: what comes and goes takes no node along, and the node of
	// all providers, if there is to be that one instead, has time to come. Without any node of the broker Liqo would remove the namespaces
	// that are offloaded there.
	settle = time.Minute
)

// State is what there is on a consumer at one moment, of one broker.
type State struct {
	// Broker is the broker, and Own this cluster.
	Broker, Own cluster.ID
	// Told tells that the broker has said which nodes there are to be, which are Wanted, each with its provider, by their names: as it has
	// written them.
	Told   bool
	Wanted map[string]cluster.ID
	// Asked are the nodes for which the broker is asked as planned here, by their names.
	Asked map[string]Asked
	// Taken are other names of nodes, and who has them.
	Taken map[string]string
	// Unwanted is that of the last plan; empty if there is none.
	Unwanted map[string]time.Time
	// Now is the time.
	Now time.Time
}

// Asked is a node for which a broker is asked.
type Asked struct {
	// Ending tells that it is being given up, or that somebody else has deleted it.
	Ending bool
	// Pods tells that pods are bound to the node.
	Pods bool
}

// Plan is what is to be done.
type Plan struct {
	// Ask are the nodes for which the broker is to be asked, each with its provider, by their names: those for which it is asked already, too.
	Ask map[string]cluster.ID
	// GiveUp are those for which it is to be asked no more, in order.
	GiveUp []string
	// Said is what people may want to know of other nodes, by their names: why one that the broker wants is not asked for, or why one that it
	// does not want is kept.
	Said map[string]string
	// Unwanted is since when the broker does not want what it is asked for. The next plan must know it.
	Unwanted map[string]time.Time
}

// Make decides. While it is not known what a broker wants, all stays as it is.
//
// A broker is believed about no more than which of its providers it is: the name of a node follows from the two clusters. What it does not
// want any more is given up when no pod is bound to the node.
func Make(s *State) Plan {
	p := Plan{Ask: map[string]cluster.ID{}, Said: map[string]string{}, Unwanted: map[string]time.Time{}}
	if !s.Told {
		p.Unwanted = s.Unwanted
		return p
	}
	of := map[cluster.ID]string{}
	for _, name := range s.ranked() {
		provider := s.Wanted[name]
		if why := s.refusal(name, provider, of[provider], len(p.Ask)); why != "" {
			p.Said[name] = why
			continue
		}
		of[provider] = name
		p.Ask[name] = provider
	}
	for _, name := range slices.Sorted(maps.Keys(s.Asked)) {
		asked := s.Asked[name]
		if _, wanted := p.Ask[name]; wanted || asked.Ending {
			continue
		}
		since, was := s.Unwanted[name]
		if !was {
			since = s.Now
		}
		p.Unwanted[name] = since
		switch {
		case s.Now.Sub(since) < settle:
		case asked.Pods:
			p.Said[name] = "the broker does not want the node any more, and it is kept for the pods that are there"
		default:
			p.GiveUp = append(p.GiveUp, name)
		}
	}
	return p
}

// ranked returns the names of the nodes that the broker wants, in the order in which they are asked for: what is asked for stays. More than
// people can read about are not looked at.
func (s *State) ranked() []string {
	rank := func(name string) int {
		if _, asked := s.Asked[name]; asked {
			return 0
		}
		return 1
	}
	names := slices.SortedFunc(maps.Keys(s.Wanted), func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return names[:min(len(names), 2*MaxNodes)]
}

// refusal returns why a node of a provider is not asked for, of which another one may be asked for, as are a number of others; empty if it
// is.
func (s *State) refusal(name string, provider cluster.ID, other string, others int) string {
	if err := nodename.CheckOfSlice(name, s.Broker, provider); err != nil {
		return err.Error()
	}
	asked, is := s.Asked[name]
	switch holder := s.Taken[name]; {
	case len(validation.IsDNS1123Label(string(provider))) > 0:
		return fmt.Sprintf("its provider %.63q is no ID of a cluster", provider)
	case provider == s.Own:
		return "its provider is this cluster itself"
	case other != "":
		return "its provider has node " + other
	case others == MaxNodes:
		return fmt.Sprintf("the broker wants more than %d nodes", MaxNodes)
	case is && asked.Ending:
		return "it is being deleted, and comes back then"
	case !is && holder != "":
		return "its name is taken by " + holder
	default:
		return ""
	}
}
