// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Provider is what placement knows of a provider. Five parties have a say, and neither
// knows what the others say: the provider itself (Health), people (Scheduling), the policy
// (Choice), what became of the namespace there (Namespace), and the consumer (ViewUnknown).
// New pods go only where all five let them, and pods leave if one of them wants it:
//
//	says          new pods go    what runs there
//	NotReady      no             stays
//	Ready         yes            stays
//	Withdrawn     no             leaves
//	Ending        no             Liqo evicts it
//	Active        yes            stays
//	Cordoned      no             stays
//	Closing       they can       stays until none can come any more
//	Drained       no             leaves
//	Chosen        yes            stays
//	Barred        no             stays
//	Unchosen      no             leaves, if the provider is Ready and Active
//	Absent        once Present   there is nothing
//	Present       yes            stays
//	Refused       no             leaves; never selected
//	Passed        no             leaves; never selected
//	ViewUnknown   no             stays
//
// A provider that is Closing or Drained gets nothing either while another one that is Active is ViewUnknown: pods wait
// for that one. Nothing new goes to a provider that is lost, and what runs there is for [Failover].
type Provider struct {
	ID     cluster.ID
	Health Health
	// LostSince tells since when the provider is out of reach; zero if it is not.
	LostSince  time.Time
	Scheduling Scheduling
	Choice     Choice
	Namespace  Namespace
	// Room is the largest pod that the scheduler can place on the provider; empty if it
	// takes none.
	Room corev1.ResourceList
	// Direct tells that the consumer of the namespace reaches the provider past the
	// broker, so that its pods serve there also while the provider is lost.
	Direct bool
	// ViewUnknown tells that the consumer has not told lately that it can reach the provider,
	// so that it might show wrong addresses of new pods there. Those of what runs were right
	// when it came.
	ViewUnknown bool
}

// Health is how a provider is. It says nothing of whether pods are wanted there.
type Health int

// The healths.
const (
	// NotReady: pods placed on the provider cannot start there, or nobody knows.
	NotReady Health = iota
	// Ready: they can.
	Ready
	// Withdrawn: the provider takes back what it offers.
	Withdrawn
	// Ending: the peering with the provider ends. Liqo itself evicts what runs there: who
	// deletes a pod in that moment can make it forget the others
	// (evictPods in pkg/liqo-controller-manager/virtualnode-controller/drain.go@v0.9.4).
	Ending
)

// Scheduling is what people want of a provider, as far as the scheduler follows.
type Scheduling int

// The schedulings.
const (
	// Active: it takes pods.
	Active Scheduling = iota
	// Cordoned: it takes no new pods, and keeps those that are there.
	Cordoned
	// Closing: it is to be drained, and the scheduler may still place pods there. None leaves
	// yet, or else it could come back.
	Closing
	// Drained: it is to be drained, and the scheduler places no pod there any more.
	Drained
)

// Choice is what the policy of a namespace says of a provider.
type Choice int

// The choices.
const (
	// Chosen: the policy has chosen the provider, or there is no policy.
	Chosen Choice = iota
	// Barred: a policy that cannot decide at present may exclude the provider.
	Barred
	// Unchosen: the policy prefers other providers.
	Unchosen
)

// Namespace is what became of the namespace on a provider.
type Namespace int

// What becomes of namespaces.
const (
	// Absent: it does not exist there yet.
	Absent Namespace = iota
	// Present: it exists there.
	Present
	// Refused: it cannot be made there.
	Refused
	// Passed: it came from there, or through it. Such a provider is never selected, or else a
	// workload would go in circles.
	Passed
)

// member is a provider at the time of a decision.
type member struct {
	Provider

	// failed tells that it has been lost for long enough to replace what is there.
	failed bool
}

// usable reports whether pods may be placed on the provider.
func (p Provider) usable() bool { return p.isOpen() && !p.ViewUnknown }

// AwaitsView reports whether pods may be placed on the provider as soon as the consumer tells that it can reach it.
func (p Provider) AwaitsView() bool { return p.isOpen() && p.ViewUnknown }

// isOpen reports whether pods may be placed on the provider, as far as the consumer has no say.
func (p Provider) isOpen() bool {
	return p.Health == Ready && !p.lost() && p.Scheduling == Active && p.Choice == Chosen && p.mayHost()
}

// isUnreached reports whether new pods stay away from the provider because of the consumer, among others perhaps: of
// who else has a say, people and the policy want them there, and the namespace can be there.
func (p Provider) isUnreached() bool {
	return p.ViewUnknown && p.Scheduling == Active && p.Choice == Chosen && p.mayHost()
}

// lost reports whether the provider is out of reach.
func (p Provider) lost() bool { return !p.LostSince.IsZero() }

// mayHost reports whether the namespace can be on the provider at all.
func (p Provider) mayHost() bool { return p.Namespace == Absent || p.Namespace == Present }

// recedes reports whether the provider is about to have nothing for anybody.
func (p Provider) recedes() bool { return p.Health == Withdrawn || p.Health == Ending }

// isLeft reports whether people want no pods on the provider, also while some can still come.
func (p Provider) isLeft() bool { return p.Scheduling == Closing || p.Scheduling == Drained }

// leaves reports whether pods must not stay on the provider.
func (p Provider) leaves() bool { return !p.mayHost() || p.recedes() || p.Scheduling == Drained }

// onlyUnchosen reports whether pods are to leave the provider only because it is not
// chosen. From one that is out of reach they are not moved for that.
func (p Provider) onlyUnchosen() bool {
	return p.Choice == Unchosen && p.Scheduling == Active && p.Health == Ready && p.mayHost()
}
