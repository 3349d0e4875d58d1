// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// watchTunnels keeps the peers of the addresses up to date until the context
// ends, and calls changed when translations may have changed. It returns once
// the tunnels that exist are known.
func watchTunnels(ctx context.Context, client dynamic.Interface, to *Addresses, changed func(), log logr.Logger) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(netv1alpha1.TunnelEndpointGroupVersionResource).Informer()
	set := func(object any) {
		tunnel, err := parseTunnel(object)
		if err != nil {
			log.Error(err, "Ignored a tunnel endpoint")
			return
		}
		link := v09.LinkOf(tunnel)
		if link.Negotiating != nil {
			log.V(1).Info("Ignored a tunnel endpoint", "reason", link.Negotiating.Error())
			return
		}
		if to.SetPeer(link.Peer, link.Path) {
			changed()
		}
		to.setRoundTrip(link.Peer, link.RoundTrip, link.Measured)
	}
	// A tunnel that is gone translates nothing any more, also if the watch has missed its end.
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, updated any) { set(updated) },
		DeleteFunc: func(deleted any) {
			if unknown, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
				deleted = unknown.Obj
			}
			tunnel, err := parseTunnel(deleted)
			if err != nil {
				log.Error(err, "Ignored a deleted tunnel endpoint")
				return
			}
			if link := v09.LinkOf(tunnel); link.Negotiating == nil && to.deletePeer(link.Peer) {
				to.setRoundTrip(link.Peer, 0, time.Time{})
				changed()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch tunnel endpoints: %w", err)
	}
	// Nobody asks for an address before the tunnels that exist are known.
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("watch tunnel endpoints: %w", context.Cause(ctx))
	}
	return nil
}

func parseTunnel(object any) (*v09.TunnelEndpoint, error) {
	raw, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("tunnel endpoint is a %T", object)
	}
	tunnel := &v09.TunnelEndpoint{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, tunnel); err != nil {
		return nil, fmt.Errorf("parse tunnel endpoint %s/%s: %w", raw.GetNamespace(), raw.GetName(), err)
	}
	return tunnel, nil
}
