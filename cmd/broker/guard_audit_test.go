// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/webhook/isolation"
)

// TestGuardAudit has users change what they trade on a real API server, which asks the guard as the manifests say: the events name who it
// was, and nothing else is recorded. The guard has the rights of the manifests, and no others.
func TestGuardAudit(t *testing.T) {
	s := startServer(t, "deploy/connector/crds")
	federation{}.populate(s)
	if err := connectorv1alpha1.AddToScheme(s.client.Scheme()); err != nil {
		t.Fatal(err)
	}
	s.as = s.allowed(guardName, "deploy/guard/rbac.yaml")
	s.asked("../../deploy/guard/webhook.yaml")
	stop := s.startGuard()
	defer stop()

	// What the connector writes itself is nobody's decision. It may do all here.
	connector, _ := s.user(connectorUser)
	sale := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "sale"}}
	sale.Spec.Buyer, sale.Spec.ContractID = connectorv1alpha1.PartyID(strings.Repeat("a", 52)), "c1"
	if err := connector.Create(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"state":"Active"}}`))
	if err := connector.Status().Patch(t.Context(), sale, status); err != nil {
		t.Fatal(err)
	}
	patch := func(by client.Client, change string, options ...client.PatchOption) {
		t.Helper()
		of := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: sale.Name}}
		if err := by.Patch(t.Context(), of, client.RawPatch(types.MergePatchType, []byte(change)), options...); err != nil {
			t.Fatal(err)
		}
	}

	// The API server learns of the webhook, and of its certificate, a while later. Who only tries it is warned, and not recorded.
	alice, warned := s.user("alice@example.com")
	const suspend = `{"spec":{"suspended":true}}`
	s.eventually("a warning", func() bool {
		patch(alice, suspend, client.DryRunAll)
		return len(warned()) > 0
	})
	if got := warned()[0]; !strings.HasPrefix(got, "Sale sale gives its buyer nothing while it is suspended") {
		t.Errorf("who tries to suspend a sale is told %q", got)
	}
	s.pass(2 * time.Second)
	if got := s.recorded(); len(got) > 0 {
		t.Errorf("a dry run is recorded: %q", got)
	}

	// Who does it is told of, by name; the connector, and what changes no spec, is not.
	patch(alice, suspend)
	patch(connector, `{"spec":{"reason":"by itself"}}`)
	patch(alice, `{"metadata":{"labels":{"a":"b"}}}`)
	if err := alice.Status().Patch(t.Context(), sale, status); err != nil {
		t.Fatal(err)
	}
	bob, told := s.user("bob@example.com")
	patch(bob, `{"spec":{"end":{"reason":"moves"}}}`)
	if got := strings.Join(told(), "|"); !strings.HasPrefix(got, "Sale sale ends after the agreed notice") {
		t.Errorf("who ends a sale is told %q", got)
	}
	if err := alice.Delete(t.Context(), &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: sale.Name}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Sale sale: alice@example.com changed spec.suspended: none → true",
		"Sale sale: bob@example.com changed spec.end.reason: none → moves",
		"Sale sale: alice@example.com deleted it",
	}
	s.eventually("all events", func() bool { return len(s.recorded()) >= len(want) })
	s.pass(2 * time.Second)
	if diff := cmp.Diff(want, s.recorded()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// startGuard starts the guard, and returns what stops it.
func (s *server) startGuard() (stop func()) {
	s.tb.Helper()
	config := rest.CopyConfig(s.config)
	config.Impersonate = s.as
	scheme, err := daemon.Kinds(lines.AddToScheme)
	if err != nil {
		s.tb.Fatal(err)
	}
	g := &guard{
		guardOptions: guardOptions{
			ReplicaOptions: daemon.ReplicaOptions{LiqoNamespace: liqo.DefaultNamespace}, webhookAddress: s.webhooks,
			webhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
		level: isolation.DefaultLevel, peers: &peernet.Peers{}, replica: &daemon.Replica{Log: logr.Discard(), Scheme: scheme, Rest: config},
	}
	ctx, cancel := context.WithCancel(s.tb.Context())
	made, err := g.setup(ctx)
	if err != nil {
		cancel()
		s.tb.Fatalf("setup(): %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- made.Manager.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.tb.Errorf("Start(): %v", err)
		}
	}
}
