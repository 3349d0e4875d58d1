// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// maxClasses is how many classes of a kind are listed, and how many of what one ResourceSlice lists are looked at.
const maxClasses = 64

// classInterval is the least time between two changes of the classes on a node of a consumer. Each may restart its virtual kubelet, and a
// provider may list others as often as it likes.
const classInterval = 10 * time.Minute

// Classes are those of ingresses and of load balancers that clusters have for others: at most maxClasses. The zero Classes are none.
type Classes struct{ ingress, loadBalancer classNames }

// classNames are the names of classes, each with whether it may be the default.
type classNames map[string]bool

// NodeClasses are the classes for the nodes of one consumer. They are not changed.
type NodeClasses struct {
	// all are for a node without a provider of its own, and those of each provider for a node of that one.
	all Classes
	of  map[cluster.ID]Classes
}

// on returns the classes for the node of a provider; of that for all if it is empty.
func (c NodeClasses) on(provider cluster.ID) Classes {
	if provider == "" {
		return c.all
	}
	return c.of[provider]
}

// GrantedClasses returns the classes that each provider has for a cluster, as its ResourceSlices say.
func GrantedClasses(ctx context.Context, objects client.Reader, own cluster.ID) (map[cluster.ID]Classes, error) {
	var all api.ResourceSliceList
	if err := objects.List(ctx, &all, client.MatchingFields{indexClasses: hasClasses}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the resource slices with classes: %w", err)
	}
	slices.SortFunc(all.Items, func(a, b api.ResourceSlice) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	listed := map[cluster.ID][]Classes{}
	for i := range all.Items {
		s := &all.Items[i]
		tenant, err := reader{objects, own}.Tenant(ctx, s.Namespace)
		if err != nil {
			return nil, err
		}
		if tenant.ID != "" && CheckSlice(s, tenant.ID, own) == nil {
			listed[tenant.ID] = append(listed[tenant.ID], classesOf(s))
		}
	}
	granted := make(map[cluster.ID]Classes, len(listed))
	for id, of := range listed {
		granted[id] = merge(of)
	}
	return granted, nil
}

// classesOf returns the classes that a ResourceSlice lists, without those that no class can be called. It looks at the first ones only: a
// provider may list as many as fit an object.
func classesOf(s *api.ResourceSlice) Classes {
	c := Classes{ingress: classNames{}, loadBalancer: classNames{}}
	for _, class := range s.Status.IngressClasses[:min(len(s.Status.IngressClasses), maxClasses)] {
		if len(validation.IsDNS1123Subdomain(class.Name)) == 0 {
			c.ingress[class.Name] = class.Default
		}
	}
	for _, class := range s.Status.LoadBalancerClasses[:min(len(s.Status.LoadBalancerClasses), maxClasses)] {
		if len(validation.IsQualifiedName(class.Name)) == 0 {
			c.loadBalancer[class.Name] = class.Default
		}
	}
	return c
}

// ClassesFor returns the classes for the nodes of a consumer, given those that each provider has: on a node for all providers, those of all
// but the consumer itself, of which each has its share.
func ClassesFor(consumer cluster.ID, granted map[cluster.ID]Classes) NodeClasses {
	var others []Classes
	for _, id := range slices.Sorted(maps.Keys(granted)) {
		if id != consumer {
			others = append(others, granted[id])
		}
	}
	return NodeClasses{all: merge(others), of: granted}
}

// merge returns the classes that one of several clusters has, in an order that does not change.
func merge(of []Classes) Classes {
	ingress, loadBalancer := make([]classNames, len(of)), make([]classNames, len(of))
	for i := range of {
		ingress[i], loadBalancer[i] = of[i].ingress, of[i].loadBalancer
	}
	return Classes{ingress: inTurns(ingress), loadBalancer: inTurns(loadBalancer)}
}

// inTurns returns the names that one of several clusters has, and no more than maxClasses. In each turn every cluster names one, so that
// none takes the room of others by naming many; what several name has one place.
func inTurns(of []classNames) classNames {
	orders := make([][]string, len(of))
	for i, names := range of {
		orders[i] = names.wanted()
	}
	all := make(classNames, maxClasses)
	for turn := range maxClasses {
		for _, order := range orders {
			if turn < len(order) && len(all) < maxClasses {
				all[order[turn]] = false
			}
		}
	}
	for _, names := range of {
		for name, usual := range names {
			if _, listed := all[name]; listed && usual {
				all[name] = true
			}
		}
	}
	return all
}

// wanted returns the names in the order in which a cluster that has them names them: what may be the default first.
func (c classNames) wanted() []string {
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		switch {
		case c[a] == c[b]:
			return cmp.Compare(a, b)
		case c[a]:
			return -1
		default:
			return 1
		}
	})
}

// listed returns the classes as a status lists them. The one that counts stays, as long as it can: with another one, Liqo restarts the
// virtual kubelet of the consumer.
func (c Classes) listed(was *api.ResourceSliceStatus) (ingress []api.IngressClass, loadBalancer []api.LoadBalancerClass) {
	usual := ""
	if all := was.IngressClasses; len(all) > 0 {
		usual = all[max(0, slices.IndexFunc(all, func(c api.IngressClass) bool { return c.Default }))].Name
	}
	for name, isUsual := range c.ingress.inOrder(usual) {
		ingress = append(ingress, api.IngressClass{Name: name, Default: isUsual})
	}
	usual = ""
	if all := was.LoadBalancerClasses; len(all) > 0 {
		usual = all[max(0, slices.IndexFunc(all, func(c api.LoadBalancerClass) bool { return c.Default }))].Name
	}
	for name, isUsual := range c.loadBalancer.inOrder(usual) {
		loadBalancer = append(loadBalancer, api.LoadBalancerClass{Name: name, Default: isUsual})
	}
	return ingress, loadBalancer
}

// inOrder yields the classes by name, of which one at most is the default: the one that counted, or else the first that may be. Where none
// may be, Liqo takes the first of the list (getDefaultIngressClass in liqo/pkg/vkMachinery/forge@v1.2.0): the one that counted comes first.
func (c classNames) inOrder(was string) iter.Seq2[string, bool] {
	names := slices.Sorted(maps.Keys(c))
	counted := slices.Index(names, was)
	at := counted
	if at < 0 || !c[was] {
		at = slices.IndexFunc(names, func(name string) bool { return c[name] })
	}
	if at < 0 && counted > 0 {
		names = slices.Insert(slices.Delete(names, counted, counted+1), 0, was)
	}
	return func(yield func(string, bool) bool) {
		for i, name := range names {
			if !yield(name, i == at) {
				return
			}
		}
	}
}

// lists reports whether a status lists the same classes.
func lists(status *api.ResourceSliceStatus, ingress []api.IngressClass, loadBalancer []api.LoadBalancerClass) bool {
	return slices.Equal(status.IngressClasses, ingress) && slices.Equal(status.LoadBalancerClasses, loadBalancer)
}

// classesWait returns for how long the classes that a status lists have to stay. Where there is no node yet they need not, nor where the
// condition says a time that is to come: another clock has written it.
func classesWait(status *api.ResourceSliceStatus, now time.Time) time.Duration {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != api.SliceResources {
			continue
		}
		if age := now.Sub(c.LastTransitionTime.Time); c.Status == api.SliceAccepted && age >= 0 {
			return max(0, classInterval-age)
		}
		return 0
	}
	return 0
}

// GivesClasses reports whether an object of Kinds.Offer is one by which a provider has classes for this cluster.
func GivesClasses(o client.Object) bool {
	s, is := o.(*api.ResourceSlice)
	if !is {
		return false
	}
	given := GrantOf(s)
	return !FromConsumer(s) && given.InForce() && s.DeletionTimestamp.IsZero() &&
		len(s.Status.IngressClasses)+len(s.Status.LoadBalancerClasses) > 0
}

// ClassesChanged reports whether an update of an object of Kinds.Offer changes which classes providers have for this cluster.
func ClassesChanged(before, after client.Object) bool {
	was, is := before.(*api.ResourceSlice), after.(*api.ResourceSlice)
	if gave, gives := GivesClasses(was), GivesClasses(is); !gave || !gives {
		return gave != gives
	}
	return sliceChanged(was, is) || !slices.Equal(was.Status.IngressClasses, is.Status.IngressClasses) ||
		!slices.Equal(was.Status.LoadBalancerClasses, is.Status.LoadBalancerClasses)
}
