// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/hostile"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestUnguarded takes the guard from a seller: nobody is told of its offers any more, until it is guarded again.
func TestUnguarded(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.20"})
	guard := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "liqo-broker-guard"}}
	if err := fed.ProviderA.Delete(t.Context(), guard); err != nil {
		t.Fatal(err)
	}
	guarded := func(ctx context.Context) error {
		return fed.Guard(ctx, fed.ProviderA, federation.NewProgress(os.Stderr))
	}
	walk.AtEnd(t, guarded)
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return fed.ProviderA.Is(ctx, &connectorv1alpha1.Offer{}, "compute", connectorv1alpha1.ConditionPublished,
			connectorv1alpha1.ReasonUnguarded)
	})
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Published(ctx) })
	if err := guarded(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error { return fed.Published(ctx, fed.ProviderA) })
}

// TestTradersStayInBounds has a buyer and its seller try what no peer must achieve, each at the other, with the identity that Liqo gave it
// there, and with the token that the contract gave it. Neither gets anything, and the contract goes on.
func TestTradersStayInBounds(t *testing.T) {
	_, answers := contracted(t)
	for _, who := range traders(t) {
		t.Run(who.peer.Name, func(t *testing.T) {
			could, err := who.tried(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, what := range could {
				t.Errorf("%s could %s", who.peer.Name, what)
			}
		})
	}
	if err := answers(t.Context()); err != nil {
		t.Errorf("the workload has suffered: %v", err)
	}
}

// TestLiqoAlone takes the guard's webhooks and policies from a buyer and its seller for a moment, and what its quotas bound. Each may then
// do all that they refuse, and nothing that Liqo's roles or Liqo itself refuse; nothing comes of it. When they are back, each may do
// nothing of it.
func TestLiqoAlone(t *testing.T) {
	_, answers := contracted(t)
	both := traders(t)
	var refused []string
	for _, who := range both {
		for _, attempt := range who.attempts() {
			if attempt.LiqoLets() {
				refused = append(refused, attempt.Name)
			}
		}
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	// could returns an error unless both together can do what is wanted. The API server needs a moment to ask others, or nobody.
	could := func(want []string) func(context.Context) error {
		return func(ctx context.Context) error {
			var all []string
			var errs []error
			for _, who := range both {
				some, err := who.tried(ctx)
				all, errs = append(all, some...), append(errs, err)
			}
			slices.Sort(all)
			if diff := cmp.Diff(want, slices.Compact(all)); diff != "" {
				errs = append(errs, fmt.Errorf("what they can (-want +got):\n%s", diff))
			}
			return errors.Join(errs...)
		}
	}
	for i := range both {
		both[i].DryRun = true
		end, err := both[i].at.LiqoAlone(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		walk.AtEnd(t, func(context.Context) error { return end() })
		both[i].guard = end
	}
	eventually(t, time.Minute, could(refused))
	for _, who := range both {
		if err := who.guard(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, could(nil))
	if err := answers(t.Context()); err != nil {
		t.Errorf("the workload has suffered: %v", err)
	}
}

// A trader is a buyer or a seller that means no good, at the other one of them.
type trader struct {
	*hostile.Peer
	// relay is the Liqo of the other one.
	relay *hostile.Relay

	peer, at *federation.Cluster
	// guard guards the other one again.
	guard func() error
}

// traders returns the consumer at provider-b, and provider-b at the consumer, which have a contract.
func traders(t *testing.T) []trader {
	t.Helper()
	buyer, seller := fed.Consumer, fed.ProviderB
	var maps vkv1alpha1.NamespaceMapList
	if err := buyer.List(t.Context(), &maps, client.MatchingLabels{liqo.LabelRemoteClusterID: string(seller.ID)}); err != nil {
		t.Fatal(err)
	}
	if len(maps.Items) != 1 {
		t.Fatalf("%s has %d NamespaceMaps for %s, want 1", buyer.Name, len(maps.Items), seller.Name)
	}
	offloads := &maps.Items[0]
	both := []trader{
		{Peer: intruder(t, buyer, seller, twinAt(t, seller, buyer)), relay: &hostile.Relay{}, peer: buyer, at: seller},
		{
			Peer: intruder(t, seller, buyer, ""), relay: &hostile.Relay{Namespace: offloads.Namespace, Map: offloads.Name},
			peer: seller, at: buyer,
		},
	}
	for _, who := range both {
		config, err := who.at.Lab.RESTConfig()
		if err != nil {
			t.Fatal(err)
		}
		who.relay.Peer, who.relay.Victim = who.ID, who.Victim
		if err := who.relay.Connect(config); err != nil {
			t.Fatal(err)
		}
	}
	return both
}

// attempts are all that the trader tries: by the identity that Liqo gave it, and by the Liqo of the other one.
func (who trader) attempts() []hostile.Attempt {
	return slices.Concat(who.Attempts(), who.relay.Attempts())
}

// tried has a trader try everything. It returns what it can do, and an error for each answer that says something else than it should.
func (who trader) tried(ctx context.Context) (could []string, err error) {
	could, err = hostile.TryAll(ctx, who.attempts(), func(got error) bool {
		// Only a broker has all kinds. Who only sells, or only buys, has fewer rights.
		return meta.IsNoMatchError(got) || strings.Contains(got.Error(), hostile.NoRight)
	})
	if err != nil {
		err = fmt.Errorf("%s at %s: %w", who.peer.Name, who.at.Name, err)
	}
	return could, err
}

// intruder returns a peer of a cluster that means no good.
func intruder(t *testing.T, peer, at *federation.Cluster, twin string) *hostile.Peer {
	t.Helper()
	config, err := at.Lab.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	fc, err := v09.ForeignClusterOf(t.Context(), at, peer.ID)
	if err != nil || fc == nil {
		t.Fatalf("%s does not know %s: %v", at.Name, peer.Name, err)
	}
	var identities corev1.SecretList
	err = peer.List(t.Context(), &identities, client.MatchingLabels{
		"discovery.liqo.io/local-identity": "true", "discovery.liqo.io/cluster-id": string(at.ID),
	})
	if err != nil || len(identities.Items) != 1 {
		t.Fatalf("%s has %d identities at %s: %v", peer.Name, len(identities.Items), at.Name, err)
	}
	p := &hostile.Peer{
		ID: peer.ID, Tenant: v09.TenantNamespace(fc), Twin: twin, Broker: at.ID, Victim: fed.ProviderA.ID, VictimTenant: "liqo-tenant-victim",
		Node: at.Name,
	}
	if err := p.Connect(config, identities.Items[0].Data); err != nil {
		t.Fatal(err)
	}
	return p
}

// twinAt returns the twin of the shared namespace of a peer at a cluster.
func twinAt(t *testing.T, at, of *federation.Cluster) string {
	t.Helper()
	twin, err := at.Twin(t.Context(), of, shared)
	if err != nil {
		t.Fatal(err)
	}
	return twin
}
