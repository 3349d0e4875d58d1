// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// reasonSeveralNetworks is the reason of the event on a Provider.
const reasonSeveralNetworks = "SeveralNetworks"

// Networks tells people of providers to which there are several networks, of which Liqo makes one and the view is of the oldest.
type Networks struct {
	cfg  Config
	said news
}

// NewNetworks returns Networks.
func NewNetworks(cfg Config) *Networks { return &Networks{cfg: cfg} }

// setupNetworks registers the controller with a manager.
func setupNetworks(mgr ctrl.Manager, cfg Config) error {
	comesOrGoes := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	err := ctrl.NewControllerManagedBy(mgr).Named("provider-networks").
		For(&v1alpha1.Provider{}, builder.WithPredicates(comesOrGoes)).
		Watches(v1.NewConfiguration(), handler.EnqueueRequestsFromMapFunc(watch.OfTenant(cfg.Reader)),
			builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Complete(NewNetworks(cfg))
	if err != nil {
		return fmt.Errorf("set up the controller of the networks of providers: %w", err)
	}
	return nil
}

// Reconcile tells people which networks there are to a provider, when it is more than one, and others than before.
func (n *Networks) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var p v1alpha1.Provider
	id := cluster.ID(req.Name)
	if err := n.cfg.Client.Get(ctx, req.NamespacedName, &p); err != nil {
		if client.IgnoreNotFound(err) == nil {
			n.said.isNews(id, "")
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get provider %s: %w", id, err)
	}
	names, err := v1.NetworksTo(ctx, n.cfg.Client, n.cfg.Reader.Own(), id)
	if err != nil {
		return ctrl.Result{}, err
	}
	what := ""
	if len(names) > 1 {
		what = fmt.Sprintf("Liqo has %d Configurations of the cluster, of which the oldest counts, %s: delete the others, %s",
			len(names), names[0], excerpt.Of(strings.Join(names[1:], ", "), maxNames))
	}
	if n.said.isNews(id, what) {
		n.cfg.Recorder.Event(&p, corev1.EventTypeWarning, reasonSeveralNetworks, what)
	}
	return ctrl.Result{}, nil
}

// maxNames is how many bytes of names are told: peers write Configurations, too.
const maxNames = 500
