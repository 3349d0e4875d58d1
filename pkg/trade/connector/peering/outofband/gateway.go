// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

const (
	// translatedFor is for how long Liqo's gateway goes on translating what it sends to addresses after their tunnel has ended, if nothing is
	// sent there: the time that Linux keeps a UDP stream (net.netfilter.nf_conntrack_udp_timeout_stream). Its pings through the next tunnel
	// with the same addresses keep the old translation for ever.
	translatedFor = 2 * time.Minute
	// connectsIn is how long a tunnel may take to come up.
	connectsIn = 30 * time.Second
	// sparedFor is how long the gateway is left alone after it was restarted: all tunnels are down meanwhile, and a peer decides how many
	// tunnels it makes, and whether they come up.
	sparedFor = 10 * time.Minute
)

// Gateway restarts Liqo's gateway where it translates what it sends through a tunnel as it did for the last one that had the same
// addresses: that tunnel would never come up (docs/trade/buyer.md). It does so once for a tunnel, for all that wait together, not again
// within 10 minutes, and only if it has seen the last one end.
type Gateway struct {
	client    client.Client
	namespace string
	clock     clock.PassiveClock

	mu sync.Mutex
	// known are the tunnels that are there, ended is when one with a prefix ended last, and spared until when the gateway is left alone.
	known  map[types.NamespacedName]*tunnel
	ended  map[netip.Prefix]time.Time
	spared time.Time
}

// tunnel is what is known of a TunnelEndpoint.
type tunnel struct {
	uid      types.UID
	prefixes []netip.Prefix
	// reused is whether it has the addresses of one that had ended shortly before, and settled whether a restart is not for it: it was up, or
	// began before the last one.
	reused, settled bool
}

// NewGateway returns a Gateway. The client may read from a cache, and namespace is where Liqo runs.
func NewGateway(c client.Client, namespace string, now clock.PassiveClock) *Gateway {
	return &Gateway{
		client: c, namespace: namespace, clock: now,
		known: map[types.NamespacedName]*tunnel{}, ended: map[netip.Prefix]time.Time{},
	}
}

// Reconcile looks at a TunnelEndpoint.
func (g *Gateway) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	endpoint := &v09.TunnelEndpoint{}
	err := g.client.Get(ctx, req.NamespacedName, endpoint)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("get tunnel %s: %w", req, err)
	}
	again, restart := g.look(req.NamespacedName, endpoint, err == nil)
	if !restart {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Restarts Liqo's gateway: it translates for a tunnel that has ended", "cluster", v09.TunnelCluster(endpoint))
	if err := g.restart(ctx); err != nil {
		return ctrl.Result{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spared = g.clock.Now().Add(sparedFor)
	for _, t := range g.known {
		t.settled = true
	}
	return ctrl.Result{}, nil
}

// look notes what there is of a tunnel, and returns whether the gateway has to be restarted for it, or when to look again.
func (g *Gateway) look(name types.NamespacedName, endpoint *v09.TunnelEndpoint, there bool) (again time.Duration, restart bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	if before, known := g.known[name]; known && (!there || before.uid != endpoint.UID) {
		for _, prefix := range before.prefixes {
			g.ended[prefix] = now
		}
		delete(g.known, name)
	}
	for prefix, at := range g.ended {
		if now.Sub(at) > 2*translatedFor {
			delete(g.ended, prefix)
		}
	}
	if !there {
		return 0, false
	}
	t := g.known[name]
	if t == nil {
		t = &tunnel{uid: endpoint.UID}
		g.known[name] = t
	}
	t.prefixes = v09.LinkOf(endpoint).Seen
	t.reused = t.reused || g.reused(t.prefixes, endpoint.CreationTimestamp.Time)
	t.settled = t.settled || v09.Connected(endpoint)
	if t.settled || !t.reused || !endpoint.DeletionTimestamp.IsZero() {
		return 0, false
	}
	if wait := max(endpoint.CreationTimestamp.Add(connectsIn).Sub(now), g.spared.Sub(now)); wait > 0 {
		return wait, false
	}
	return 0, true
}

// reused reports whether a tunnel with one of the prefixes had ended shortly before another one began.
func (g *Gateway) reused(prefixes []netip.Prefix, began time.Time) bool {
	for _, prefix := range prefixes {
		if at, ended := g.ended[prefix]; ended && began.Sub(at) < translatedFor {
			return true
		}
	}
	return false
}

// restart has the gateway begin again, as kubectl rollout restart does.
func (g *Gateway) restart(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{"kubectl.kubernetes.io/restartedAt": g.clock.Now().UTC().Format(time.RFC3339)},
	}}}})
	if err != nil {
		return fmt.Errorf("write how to restart the gateway: %w", err)
	}
	gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: v09.GatewayName}}
	if err := g.client.Patch(ctx, gateway, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("restart Deployment %s/%s: %w", g.namespace, v09.GatewayName, err)
	}
	return nil
}
