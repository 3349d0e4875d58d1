// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/explain"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Reasons of the events on twin namespaces and their offloadings that say why new pods wait. Liqo shows events of a twin namespace to its
// consumer, so they name no provider.
const (
	ReasonForeignOffloading = "OffloadingNotManaged"
	ReasonNoProvider        = "NoUsableProvider"
	ReasonUndecided         = "NoProviderChosen"
	ReasonViewUnknown       = "ViewUnknown" // As grant.ViewUnknown.
	ReasonUnserved          = v1alpha1.ReasonModeNotServed
	ReasonSuspended         = v1alpha1.ReasonSuspended
	ReasonRefused           = "NamespaceRefused"
	ReasonTooMany           = "TooManyNamespaces"
)

// Explainer says what is known of a twin namespace and what is planned for it, and what a drain would lead to. It changes nothing,
// also nothing that the Planner remembers. It may be used concurrently, and where another replica
// leads.
type Explainer struct {
	// Client reads from a cache.
	Client client.Reader
	Reader *snapshot.Reader
	// Planner is the one of the controller.
	Planner *Planner
	// MaxNamespaces is how many namespaces of a consumer are offloaded; zero for all.
	MaxNamespaces int
}

// Explain explains a namespace; ok is false if the broker offloads none of that name.
func (e *Explainer) Explain(ctx context.Context, name string) (explained explain.Namespace, ok bool, err error) {
	// What is known, as the controller knows it.
	var ns corev1.Namespace
	if err := e.Client.Get(ctx, client.ObjectKey{Name: name}, &ns); apierrors.IsNotFound(err) {
		return explained, false, nil
	} else if err != nil {
		return explained, false, fmt.Errorf("get namespace %s: %w", name, err)
	}
	if ours, err := IsOurs(ctx, e.Reader, &ns); err != nil || !ours {
		return explained, false, err
	}
	twin, alone, err := e.read(ctx, &ns)
	if err != nil {
		return explained, false, err
	}

	// What is planned. Nothing is for namespaces that are left alone.
	if alone != nil {
		explained = explain.Of(twin.Snapshot, placement.Plan{}, 0)
		explained.Waiting = alone
	} else {
		plan, again := e.Planner.Preview(&ns, twin)
		explained = explain.Of(twin.Snapshot, plan, again)
		if reason, message := Waiting(twin, plan); reason != "" {
			explained.Waiting = &explain.Waiting{Reason: reason, Message: message}
		}
	}
	explained.Name, explained.Remembers = name, e.Planner.Remembers(name)
	explained.Consumer, _ = liqo.TwinOf(&ns)
	if twin.Policy != nil {
		explained.Policy = twin.Policy.Name
	}
	return explained, true, nil
}

// read reads a namespace that the broker offloads, and says why it is left alone; nil if it is not.
func (e *Explainer) read(ctx context.Context, ns *corev1.Namespace) (*snapshot.Twin, *explain.Waiting, error) {
	twin, err := e.Reader.Twin(ctx, ns)
	if err != nil {
		return nil, nil, err
	}
	older, excess, err := IsExcess(ctx, e.Reader, e.MaxNamespaces, ns, twin)
	switch {
	case err != nil:
		return nil, nil, err
	case twin.Offloading != nil && !twin.Offloading.Managed:
		return twin, &explain.Waiting{Reason: ReasonForeignOffloading, Message: MessageForeignOffloading}, nil
	case excess:
		return twin, &explain.Waiting{Reason: ReasonTooMany, Message: MessageTooMany(older)}, nil
	default:
		return twin, nil, nil
	}
}

// IsOurs reports whether a namespace is one that the broker offloads. What another broker shows
// of itself is for this cluster and not for its providers.
func IsOurs(ctx context.Context, reader *snapshot.Reader, ns *corev1.Namespace) (bool, error) {
	consumer, ok := liqo.TwinOf(ns)
	if !ok || !ns.DeletionTimestamp.IsZero() {
		return false, nil
	}
	peer, err := reader.Peer(ctx, consumer)
	return err == nil && (peer == nil || !reader.Line().TwinOfLiqo(ns, peer.Identity)), err
}

// IsExcess reports whether a namespace that is not offloaded yet is one more than its consumer may
// have, which is most, zero for any number; older is how many it had before.
func IsExcess(
	ctx context.Context, reader *snapshot.Reader, most int, ns *corev1.Namespace, twin *snapshot.Twin,
) (older int, excess bool, err error) {
	if twin.Offloading != nil || most == 0 {
		return 0, false, nil
	}
	older, err = reader.TwinsBefore(ctx, ns)
	return older, err == nil && older >= most, err
}

// MessageForeignOffloading says that somebody else offloads a namespace.
const MessageForeignOffloading = "The broker leaves the namespace alone: somebody else made its NamespaceOffloading (no label " +
	liqo.LabelBrokerManaged + "=" + liqo.BrokerManaged + ")"

// MessageTooMany says that a consumer has so many older namespaces, and may have no more.
func MessageTooMany(older int) string {
	return fmt.Sprintf("The consumer has %d older namespaces here: pods in this one wait", older)
}

// Waiting says why new pods of a namespace wait; nothing if they do not.
func Waiting(twin *snapshot.Twin, plan placement.Plan) (reason, message string) {
	switch {
	case len(plan.Place) > 0:
		return "", ""
	case twin.Suspended:
		return ReasonSuspended, "The cluster is suspended at the broker; new pods wait"
	case twin.Snapshot.Unserved:
		return ReasonUnserved, "The broker does not run the mode of the cluster; new pods wait"
	case twin.Snapshot.Undecided:
		return ReasonUndecided, "A placement policy applies, which has chosen no provider yet; new pods wait"
	case slices.ContainsFunc(twin.Snapshot.Providers, placement.Provider.AwaitsView):
		return ReasonViewUnknown, "The cluster has not told lately that it can reach a provider; new pods wait"
	case len(plan.Select) == 0:
		return ReasonNoProvider, "No provider can be used for the namespace, which is not offloaded until one can; new pods wait"
	case twin.Policy == nil:
		return ReasonNoProvider, "No provider takes new pods; they wait"
	default:
		return ReasonUndecided, "No provider that the placement policy has chosen takes new pods; they wait"
	}
}
