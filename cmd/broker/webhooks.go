// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/webhook"
	"github.com/capacitorset/liqo-broker/pkg/webhook/identities"
	"github.com/capacitorset/liqo-broker/pkg/webhook/isolation"
	"github.com/capacitorset/liqo-broker/pkg/webhook/offering"
	"github.com/capacitorset/liqo-broker/pkg/webhook/offers"
	"github.com/capacitorset/liqo-broker/pkg/webhook/opaque"
	"github.com/capacitorset/liqo-broker/pkg/webhook/peers"
	"github.com/capacitorset/liqo-broker/pkg/webhook/pods"
	"github.com/capacitorset/liqo-broker/pkg/webhook/tunnels"
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

// setupWebhooks adds what answers the API server in all modes: whom Liqo may give a
// certificate, and that Liqo's namespace stays protected. The reader must not be a cache.
// A mere catalog leaves all else as it is, because deploy/ has the API server ask about it.
func setupWebhooks(
	mgr ctrl.Manager, certificate *selfsigned.Certificate, announcer *webhook.Announcer, direct client.Reader, brokers bool,
) error {
	mgr.GetWebhookServer().Register(identities.Path, &admission.Webhook{Handler: identities.New(mgr.GetScheme(), direct)})
	mgr.GetWebhookServer().Register(offering.Path, &admission.Webhook{Handler: offering.New(mgr.GetScheme())})
	if !brokers {
		for _, path := range brokeringPaths() {
			mgr.GetWebhookServer().Register(path, &admission.Webhook{Handler: admission.HandlerFunc(leaveAlone)})
		}
	}
	if err := errors.Join(mgr.Add(everyReplica(certificate.Run)), mgr.Add(everyReplica(announcer.Keep))); err != nil {
		return fmt.Errorf("add the certificate of the webhook: %w", err)
	}
	return nil
}

// brokeringPaths are where a daemon that is not only a catalog serves further webhooks.
func brokeringPaths() []string {
	return []string{pods.Path, isolation.Path, opaque.Path, offers.Path, peers.Path, tunnels.Path}
}

// leaveAlone admits everything.
func leaveAlone(context.Context, admission.Request) admission.Response { return admission.Allowed("") }

// setupBrokeringWebhooks adds what answers the API server where the broker is not a mere
// catalog: where consumers' pods may run, and what peers may say.
func setupBrokeringWebhooks(mgr ctrl.Manager, r *snapshot.Reader, cfg *brokerConfig) error {
	mgr.GetWebhookServer().Register(pods.Path, &admission.Webhook{Handler: pods.New(mgr.GetClient(), r)})
	isolate, err := isolation.New(mgr.GetScheme(), cfg.podSecurity)
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(isolation.Path, &admission.Webhook{Handler: isolate})
	mgr.GetWebhookServer().Register(opaque.Path, &admission.Webhook{Handler: opaque.New(mgr.GetClient(), r)})
	mgr.GetWebhookServer().Register(offers.Path, &admission.Webhook{
		Handler: offers.New(mgr.GetScheme(), r, liqo.ControllerManager(cfg.liqoNamespace)),
	})
	mgr.GetWebhookServer().Register(peers.Path, &admission.Webhook{Handler: peers.New(r, mgr.GetAPIReader(), r.Own())})
	guard, err := tunnels.New(mgr.GetAPIReader())
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(tunnels.Path, &admission.Webhook{Handler: guard})
	return nil
}

// newCertificate returns the certificate of the webhooks, and what announces it.
func newCertificate(direct client.Client) (*selfsigned.Certificate, *webhook.Announcer) {
	announcer := &webhook.Announcer{Client: direct}
	return selfsigned.New(webhook.ServerName, announcer.Announce), announcer
}

// everyReplica runs also where another replica leads.
type everyReplica func(context.Context) error

var _ manager.LeaderElectionRunnable = everyReplica(nil)

// Start implements manager.Runnable.
func (run everyReplica) Start(ctx context.Context) error { return run(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everyReplica) NeedLeaderElection() bool { return false }
