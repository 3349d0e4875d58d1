// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// Over returns a Reader of the same broker that reads from other objects.
func (r *Reader) Over(objects client.Reader) *Reader {
	other := *r
	other.reader, other.liqo = objects, r.line.Reader(objects, r.own)
	return &other
}

// Scheduled returns what a provider is once people want it to be scheduled in some way, its status says so, and nothing else has changed:
// pods may be there still. It shares no memory with the one given.
func Scheduled(p *v1alpha1.Provider, as v1alpha1.Scheduling) *v1alpha1.Provider {
	p = p.DeepCopy()
	p.Spec.Scheduling, p.Status.ObservedGeneration = as, p.Generation
	if as == v1alpha1.SchedulingActive {
		return p
	}
	// What else speaks against it, and goes before that it is to be drained, goes on doing so.
	p.Status.LargestPod = nil
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	is := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCordoned}
	switch {
	case ready == nil:
		return p
	case as == v1alpha1.SchedulingCordoned && ready.Status != metav1.ConditionTrue:
		return p
	case ready.Reason == v1alpha1.ReasonPeeringEnds || ready.Reason == v1alpha1.ReasonClusterNameTaken:
		return p
	case as == v1alpha1.SchedulingDrained:
		is.Reason = v1alpha1.ReasonDraining
	}
	meta.SetStatusCondition(&p.Status.Conditions, is)
	return p
}

// Assume returns what reads objects as they are, but for some Providers and PlacementDecisions, which it takes to be as they are given. The
// decisions need not exist. Nobody may change them as long as it is used.
func Assume(objects client.Reader, providers []v1alpha1.Provider, decisions []v1alpha1.PlacementDecision) client.Reader {
	return &assumed{Reader: objects, providers: providers, decisions: decisions}
}

type assumed struct {
	client.Reader

	providers []v1alpha1.Provider
	decisions []v1alpha1.PlacementDecision
}

// Get implements client.Reader.
func (a *assumed) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	switch object := object.(type) {
	case *v1alpha1.Provider:
		for i := range a.providers {
			if a.providers[i].Name == key.Name {
				a.providers[i].DeepCopyInto(object)
				return nil
			}
		}
	case *v1alpha1.PlacementDecision:
		for i := range a.decisions {
			if a.decisions[i].Name == key.Name {
				a.decisions[i].DeepCopyInto(object)
				return nil
			}
		}
	}
	return a.Reader.Get(ctx, key, object, options...)
}

// List implements client.Reader. What it returns may share memory with what is assumed.
func (a *assumed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := a.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	switch list := list.(type) {
	case *v1alpha1.ProviderList:
		for i := range list.Items {
			for j := range a.providers {
				if a.providers[j].Name == list.Items[i].Name {
					list.Items[i] = a.providers[j]
				}
			}
		}
	case *v1alpha1.PlacementDecisionList:
		known := make(map[string]int, len(list.Items))
		for i := range list.Items {
			known[list.Items[i].Name] = i
		}
		for _, d := range a.decisions {
			if i, is := known[d.Name]; is {
				list.Items[i] = d
			} else {
				list.Items = append(list.Items, d)
			}
		}
	}
	return nil
}
