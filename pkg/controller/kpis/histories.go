// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpis

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// histories are the histories of providers, in ProviderHistories. Nobody else writes them, so
// that each is read once. They are for one goroutine.
type histories struct {
	client client.Client
	live   client.Reader
	known  map[string]known
}

// known is a history as it was read or written last.
type known struct {
	object  *v1alpha1.ProviderHistory // Nil if there is none.
	history kpi.History
}

// readHistory returns the history of a provider. One that is missing or cannot be read begins again.
func (h *histories) readHistory(ctx context.Context, provider string) (kpi.History, error) {
	if k, is := h.known[provider]; is {
		return k.history, nil
	}
	object := &v1alpha1.ProviderHistory{}
	err := h.live.Get(ctx, client.ObjectKey{Name: provider}, object)
	if apierrors.IsNotFound(err) {
		h.known[provider] = known{}
		return kpi.History{}, nil
	}
	if err != nil {
		return kpi.History{}, fmt.Errorf("get the history of provider %s: %w", provider, err)
	}
	history, err := kpi.Parse(object.History)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("The history of a provider cannot be read and starts over", "provider", provider, "reason", err.Error())
	}
	h.known[provider] = known{object, history}
	return history, nil
}

// writeHistory replaces the history of a provider, which owns it. After an error it is read again.
func (h *histories) writeHistory(ctx context.Context, p *v1alpha1.Provider, history kpi.History) error {
	var next *v1alpha1.ProviderHistory
	var err error
	if last := h.known[p.Name].object; last != nil {
		next = last.DeepCopy()
		next.History = history.String()
		err = h.client.Update(ctx, next)
	} else {
		next = &v1alpha1.ProviderHistory{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name, OwnerReferences: v1alpha1.OwnedBy("Provider", p)}, History: history.String(),
		}
		err = h.client.Create(ctx, next)
	}
	if err != nil {
		h.forgetProvider(p.Name)
		return fmt.Errorf("write the history of provider %s: %w", p.Name, err)
	}
	h.known[p.Name] = known{next, history}
	return nil
}

// forgetProvider drops what is known of a provider's history.
func (h *histories) forgetProvider(provider string) { delete(h.known, provider) }
