// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/webhook"
	"github.com/capacitorset/liqo-broker/pkg/webhook/addresses"
	"github.com/capacitorset/liqo-broker/pkg/webhook/audit"
	"github.com/capacitorset/liqo-broker/pkg/webhook/class"
	"github.com/capacitorset/liqo-broker/pkg/webhook/liqonamespace"
	"github.com/capacitorset/liqo-broker/pkg/webhook/offerlabels"
	"github.com/capacitorset/liqo-broker/pkg/webhook/opaque"
	"github.com/capacitorset/liqo-broker/pkg/webhook/pods"
	"github.com/capacitorset/liqo-broker/pkg/webhook/relocate"
)

// newWebhooks returns the server of the admission webhooks. It listens
// when the manager runs and something is registered.
func newWebhooks(o *options, certificate *selfsigned.Certificate, peers *peernet.Peers) *webhook.Server {
	admits := peers.Excludes
	if len(o.webhookAllow) > 0 {
		admits = func(a netip.Addr) bool {
			return slices.ContainsFunc(o.webhookAllow, func(p netip.Prefix) bool { return p.Contains(a) })
		}
	}
	return webhook.NewServer(o.webhookAddress, certificate.Get, admits, o.webhookClientCAFile)
}

const (
	// webhookConfiguration is the name of the configurations of the daemon's webhooks.
	webhookConfiguration = "liqo-broker"
	// webhookName is the host name by which the API server reaches them.
	webhookName = "liqo-broker-webhook.liqo-broker.svc"
	// daemonUser is what the API server calls the daemon.
	daemonUser = "system:serviceaccount:liqo-broker:liqo-broker"
)

// setupWebhooks adds what answers the API server in all modes: that Liqo's namespace stays protected.
// A mere catalog leaves all else as it is, because deploy/ has the API server ask about it.
func setupWebhooks(mgr ctrl.Manager, certificate *selfsigned.Certificate, announcer *webhook.Announcer, brokers bool) error {
	mgr.GetWebhookServer().Register(liqonamespace.Path, &admission.Webhook{Handler: liqonamespace.New(mgr.GetScheme())})
	if !brokers {
		for _, path := range brokeringPaths() {
			mgr.GetWebhookServer().Register(path, &admission.Webhook{Handler: admission.HandlerFunc(leaveAlone)})
		}
	}
	if err := errors.Join(mgr.Add(lease.EveryReplica(certificate.Run)), mgr.Add(lease.EveryReplica(announcer.Keep))); err != nil {
		return fmt.Errorf("add the certificate of the webhook: %w", err)
	}
	return nil
}

// brokeringPaths are where a daemon that is not only a catalog serves further webhooks.
func brokeringPaths() []string {
	return []string{pods.Path, pods.ConfinePath, opaque.Path, offerlabels.Path, relocate.Path, class.Path, addresses.Path, audit.Path}
}

// leaveAlone admits everything.
func leaveAlone(context.Context, admission.Request) admission.Response { return admission.Allowed("") }

// setupWebhooks adds what answers the API server where the broker is not a mere
// catalog: where consumers' pods may run, and what is said of providers.
func (o *brokering) setupWebhooks() {
	for path, handler := range o.handlers() {
		o.mgr.GetWebhookServer().Register(path, &admission.Webhook{Handler: handler})
	}
}

// handlers returns the webhooks at brokeringPaths. The API server does not ask about what only another line of Liqo has: of Liqo
// 0.9 offers are labelled; of 1.x ResourceSlices get a class, what providers say of addresses is checked, and pods that are moved are kept
// from ending, which with 0.9 virtual kubelets do.
func (o *brokering) handlers() map[string]admission.Handler {
	mgr, r := o.mgr, o.reader
	handlers := map[string]admission.Handler{
		pods.Path: pods.New(mgr.GetClient(), r), pods.ConfinePath: pods.NewConfinement(mgr.GetScheme()),
		opaque.Path: opaque.New(mgr.GetClient(), r),
		audit.Path:  audit.New(o.changes, daemonUser, audit.Closing(audit.Foretell(mgr.GetClient(), r, o.foresee))),
	}
	for _, path := range brokeringPaths() {
		if handlers[path] == nil {
			handlers[path] = admission.HandlerFunc(leaveAlone)
		}
	}
	if r.Line().HasPlugin() {
		handlers[offerlabels.Path] = offerlabels.New(mgr.GetScheme(), r, liqo.ControllerManager(o.cfg.liqoNamespace))
		return handlers
	}
	handlers[class.Path] = class.Handler{}
	handlers[relocate.Path] = relocate.New(mgr.GetScheme(), func(ctx context.Context, pod client.ObjectKey) (bool, error) {
		return v1.WantsPod(ctx, mgr.GetAPIReader(), pod)
	})
	handlers[addresses.Path] = addresses.New(mgr.GetScheme(), func(ctx context.Context, node string) ([]netip.Prefix, error) {
		return seenOn(ctx, mgr.GetClient(), r.Own(), node)
	})
	return handlers
}

// foresee says of a provider that is drained what the preview of the HTTP API says, also where another replica leads; nothing of one that
// the cache does not have.
func (o *brokering) foresee(ctx context.Context, provider cluster.ID) (string, error) {
	preview, _, err := o.explainer().PreviewDrain(ctx, provider, v1alpha1.SchedulingDrained)
	return preview.Message, err
}

// seenOn returns under which prefixes pods on a node are seen: those of the provider for which it stands; none if it stands for nobody.
func seenOn(ctx context.Context, objects client.Reader, own cluster.ID, name string) ([]netip.Prefix, error) {
	var node corev1.Node
	if err := objects.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return v1.PodsSeen(ctx, objects, own, liqo.NodeCluster(&node))
}

// newCertificate returns the certificate of the webhooks, and what announces it.
func newCertificate(direct client.Client) (*selfsigned.Certificate, *webhook.Announcer) {
	announcer := &webhook.Announcer{Client: direct, Configuration: webhookConfiguration}
	return selfsigned.New(webhookName, announcer.Announce), announcer
}
