// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// maxClasses is how many classes of a kind are listed.
const maxClasses = 64

// Classes are those of ingresses and of load balancers that clusters have for others. The zero Classes are none.
type Classes struct{ ingress, loadBalancer classNames }

// classNames are the names of classes, each with whether it may be the default.
type classNames map[string]bool

// merge returns what is in one of two.
func (c classNames) merge(other classNames) classNames {
	all := make(classNames, len(c)+len(other))
	for _, names := range []classNames{c, other} {
		for name, usual := range names {
			all[name] = all[name] || usual
		}
	}
	return all
}

func (c Classes) merge(other Classes) Classes {
	return Classes{ingress: c.ingress.merge(other.ingress), loadBalancer: c.loadBalancer.merge(other.loadBalancer)}
}

// GrantedClasses returns the classes that each provider has for a cluster, as its ResourceSlices say.
func GrantedClasses(ctx context.Context, objects client.Reader, own cluster.ID) (map[cluster.ID]Classes, error) {
	var all api.ResourceSliceList
	if err := objects.List(ctx, &all, client.MatchingFields{indexClasses: hasClasses}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the resource slices with classes: %w", err)
	}
	granted := map[cluster.ID]Classes{}
	for i := range all.Items {
		s := &all.Items[i]
		tenant, err := reader{objects, own}.Tenant(ctx, s.Namespace)
		if err != nil {
			return nil, err
		}
		if tenant.ID != "" && CheckSlice(s, tenant.ID, own) == nil {
			granted[tenant.ID] = granted[tenant.ID].merge(classesOf(s))
		}
	}
	return granted, nil
}

// classesOf returns the classes that a ResourceSlice lists, without those that no class can be called.
func classesOf(s *api.ResourceSlice) Classes {
	c := Classes{ingress: classNames{}, loadBalancer: classNames{}}
	for _, class := range s.Status.IngressClasses {
		if len(validation.IsDNS1123Subdomain(class.Name)) == 0 {
			c.ingress[class.Name] = class.Default
		}
	}
	for _, class := range s.Status.LoadBalancerClasses {
		if len(validation.IsQualifiedName(class.Name)) == 0 {
			c.loadBalancer[class.Name] = class.Default
		}
	}
	return c
}

// ClassesFor returns the classes for a node of a consumer: those of the provider to which its pods go, or, if that is empty, those of all
// but the consumer itself.
func ClassesFor(consumer, provider cluster.ID, granted map[cluster.ID]Classes) Classes {
	if provider != "" {
		return granted[provider]
	}
	var all Classes
	for id, classes := range granted {
		if id != consumer {
			all = all.merge(classes)
		}
	}
	return all
}

// listed returns the classes as a status lists them. A default stays, as long as it can be one: with another one, Liqo restarts the virtual
// kubelet of the consumer.
func (c Classes) listed(was *api.ResourceSliceStatus) (ingress []api.IngressClass, loadBalancer []api.LoadBalancerClass) {
	ofIngresses := slices.IndexFunc(was.IngressClasses, func(c api.IngressClass) bool { return c.Default })
	ofLoadBalancers := slices.IndexFunc(was.LoadBalancerClasses, func(c api.LoadBalancerClass) bool { return c.Default })
	usual := ""
	if ofIngresses >= 0 {
		usual = was.IngressClasses[ofIngresses].Name
	}
	for name, isUsual := range c.ingress.inOrder(usual) {
		ingress = append(ingress, api.IngressClass{Name: name, Default: isUsual})
	}
	usual = ""
	if ofLoadBalancers >= 0 {
		usual = was.LoadBalancerClasses[ofLoadBalancers].Name
	}
	for name, isUsual := range c.loadBalancer.inOrder(usual) {
		loadBalancer = append(loadBalancer, api.LoadBalancerClass{Name: name, Default: isUsual})
	}
	return ingress, loadBalancer
}

// inOrder yields the first classes by name, of which one at most is the default: the one that was it, or else the first that may be.
func (c classNames) inOrder(was string) iter.Seq2[string, bool] {
	names := slices.Sorted(maps.Keys(c))
	names = names[:min(len(names), maxClasses)]
	at := slices.Index(names, was)
	if at < 0 || !c[was] {
		at = slices.IndexFunc(names, func(name string) bool { return c[name] })
	}
	return func(yield func(string, bool) bool) {
		for i, name := range names {
			if !yield(name, i == at) {
				return
			}
		}
	}
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
