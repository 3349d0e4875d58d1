// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/core/period"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

const (
	// interval is how often a provider is looked at, and the shortest time between
	// two writes because of KPIs that wander.
	interval = time.Minute
	// refresh is after how long KPIs that stay the same are written again. It
	// leaves room for one more interval within kpi.MaxGap.
	refresh = 3 * time.Minute
	// validity is how long a KPI counts that was measured when it was written.
	validity = 10 * time.Minute
	// pingValidity is how long a round-trip time counts: Liqo measures one every 30 s.
	pingValidity = 5 * time.Minute
)

// Reconciler keeps the KPIs of one provider.
type Reconciler struct {
	client    client.Client
	reader    *snapshot.Reader
	clock     clock.PassiveClock
	pods      *podWatcher
	histories *histories

	mu sync.Mutex
	// watched is since when this process watches each provider, and what it saw then.
	watched map[string]sight
}

// sight is what was seen of a provider at a time.
type sight struct {
	at time.Time
	up bool
}

// Config is what the controller needs.
type Config struct {
	Client client.Client
	// Live reads past the cache.
	Live   client.Reader
	Reader *snapshot.Reader
	Clock  clock.PassiveClock
}

// New returns a Reconciler that reads and writes with c.
func New(cfg Config) *Reconciler {
	return &Reconciler{
		client: cfg.Client, reader: cfg.Reader, clock: cfg.Clock, pods: newPodWatcher(cfg.Client, cfg.Reader, cfg.Clock),
		watched: map[string]sight{}, histories: &histories{client: cfg.Client, live: cfg.Live, known: map[string]known{}},
	}
}

// Reconcile measures a provider, and writes what it measured into its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &v1alpha1.Provider{}
	if err := r.client.Get(ctx, req.NamespacedName, p); apierrors.IsNotFound(err) {
		r.unwatch(req.Name)
		r.histories.forgetProvider(req.Name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("get provider %s: %w", req.Name, err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	// What there is to measure, and what was measured before.
	now := r.clock.Now()
	peer, err := r.reader.Peer(ctx, cluster.ID(p.Name))
	if err != nil {
		return ctrl.Result{}, err
	}
	nodes, err := r.reader.OfferedNodesOf(ctx, cluster.ID(p.Name), peer)
	if err != nil {
		return ctrl.Result{}, err
	}
	last, err := r.histories.readHistory(ctx, p.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	// What only time shows goes into the history: whether it was up, and what became of its pods.
	history := r.observe(p, last, nodes, now)
	pods := r.pods.of(p.Name)
	history.Pods = history.Pods.Add(now, pods)
	// The values that follow from the history, rounded so that noise is not written.
	measured := map[string]kpi.KPI{}
	for name, share := range history.Availability() {
		share = math.Round(share*1e5) / 1e5
		measured[name] = kpi.KPI{Value: share, Unit: kpi.Ratio, Measured: now, Expires: now.Add(validity)}
	}
	for name, value := range history.Pods.KPIs() {
		unit := kpi.Seconds
		if name == kpi.FailureRate {
			unit = kpi.Ratio
		}
		measured[name] = kpi.KPI{Value: math.Round(value*1e3) / 1e3, Unit: unit, Measured: now, Expires: now.Add(validity)}
	}
	// The values that are what they are at this moment.
	free(p, now, measured)
	carbon(p, nodes, now, measured)
	if err := r.roundTrip(ctx, peer, measured); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.prices(ctx, p, peer, now, measured); err != nil {
		return ctrl.Result{}, err
	}

	// A write for each measurement would be too many: what has changed little waits until it is due.
	next := shown(measured)
	if last.Up != history.Up || due(p.Status.KPIs, next, now.Sub(time.Unix(last.At, 0))) {
		before := p.DeepCopy()
		p.Status.KPIs = next
		if err := r.client.Status().Patch(ctx, p, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, fmt.Errorf("patch the KPIs of provider %s: %w", p.Name, err)
		}
		// Last, because its time says when both were written.
		if err := r.histories.writeHistory(ctx, p, history); err != nil {
			return ctrl.Result{}, err
		}
		r.pods.written(p.Name, len(pods))
	}
	return ctrl.Result{RequeueAfter: interval}, nil
}

// observe notes whether a virtual node of the provider is ready, and its gateway not silent. A
// provider without virtual nodes is not peered, and not watched. The last history is some minutes
// old, in which the broker may not have run.
func (r *Reconciler) observe(p *v1alpha1.Provider, last kpi.History, nodes []corev1.Node, now time.Time) kpi.History {
	if len(nodes) == 0 {
		r.unwatch(p.Name)
		return last
	}
	up := !p.GatewayIsSilent() && slices.ContainsFunc(nodes, func(n corev1.Node) bool { return liqo.NodeReady(&n) })
	first := r.watch(p.Name, sight{now, up})
	return last.Resume(first.at, first.up).Observe(now, up)
}

// watch returns what this process saw of a provider first since it watches it.
func (r *Reconciler) watch(provider string, seen sight) sight {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, watched := r.watched[provider]
	if !watched || first.at.After(seen.at) { // Or the clock was set back.
		first = seen
		r.watched[provider] = first
	}
	return first
}

// unwatch notes that a provider is not watched any more.
func (r *Reconciler) unwatch(provider string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watched, provider)
}

// free adds what is free of the provider. One that offers nothing has nothing free.
func free(p *v1alpha1.Provider, now time.Time, measured map[string]kpi.KPI) {
	for resource, target := range map[corev1.ResourceName]struct {
		name, unit string
		per        float64
	}{
		corev1.ResourceCPU:    {kpi.FreeCPU, kpi.Cores, 1},
		corev1.ResourceMemory: {kpi.FreeMemory, kpi.GiB, 1 << 30},
	} {
		if amount, ok := p.Status.Free[resource]; ok {
			value := math.Round(amount.AsApproximateFloat64()/target.per*1e3) / 1e3
			measured[target.name] = kpi.KPI{Value: value, Unit: target.unit, Measured: now, Expires: now.Add(validity)}
		}
	}
}

// roundTrip adds what Liqo measures in the tunnel to the provider.
func (r *Reconciler) roundTrip(ctx context.Context, peer *liqo.Peer, measured map[string]kpi.KPI) error {
	links, err := r.reader.LinksTo(ctx, peer)
	if err != nil {
		return err
	}
	for i := range links {
		if took, at := links[i].RoundTrip, links[i].Measured; took > 0 {
			measured[kpi.RoundTripTime] = kpi.KPI{
				Value: float64(took) / float64(time.Millisecond), Unit: kpi.Milliseconds, Measured: at, Expires: at.Add(pingValidity),
			}
		}
	}
	return nil
}

// prices adds what people wrote into the provider's spec. If they wrote nothing, a core costs what it was bought for. For the rest counts
// what the provider asks for: of several offers, the most. Without a currency prices have the unit of ISO 4217 for none, and are taken to
// be for an hour.
func (r *Reconciler) prices(
	ctx context.Context, p *v1alpha1.Provider, peer *liqo.Peer, now time.Time, measured map[string]kpi.KPI,
) error {
	offers, _, err := r.reader.OffersBy(ctx, peer)
	if err != nil {
		return err
	}
	amounts := map[corev1.ResourceName]float64{}
	for i := range offers {
		if !offers[i].Accepted {
			continue
		}
		for resource, price := range offers[i].Prices {
			if price.Sign() >= 0 {
				amounts[resource] = max(amounts[resource], price.AsApproximateFloat64())
			}
		}
	}
	currency, hours := "XXX", 1.0
	if bought, ok := bought(peer); ok && p.Spec.Price == nil {
		// What a provider asks for in no currency says nothing beside a contract.
		currency, amounts = bought.Currency, map[corev1.ResourceName]float64{corev1.ResourceCPU: bought.Amount}
	}
	if price := p.Spec.Price; price != nil {
		currency = price.Currency
		hours = paidFor(price).Hours()
		if price.CPU != nil {
			amounts[corev1.ResourceCPU] = price.CPU.AsApproximateFloat64()
		}
		if price.Memory != nil {
			amounts[corev1.ResourceMemory] = price.Memory.AsApproximateFloat64()
		}
	}
	for resource, name := range map[corev1.ResourceName]string{corev1.ResourceCPU: kpi.PriceCPU, corev1.ResourceMemory: kpi.PriceMemory} {
		if amount, ok := amounts[resource]; ok && amount >= 0 {
			measured[name] = kpi.KPI{
				Value: amount / hours, Unit: currency + "/h", Measured: now, Expires: now.Add(validity),
			}
		}
	}
	return nil
}

// paidFor returns for how long the amounts of a price are: an hour, if it does not say.
func paidFor(price *v1alpha1.Price) time.Duration {
	if length, err := period.Parse(string(price.Period)); err == nil {
		return length
	}
	return time.Hour
}

// bought returns what a core of a cluster costs by contract; the peer may be nil.
func bought(peer *liqo.Peer) (kpi.Price, bool) {
	if peer == nil {
		return kpi.Price{}, false
	}
	price, err := kpi.ParsePrice(peer.CorePrice)
	return price, err == nil
}

// shown returns KPIs as the status shows them, in order.
func shown(measured map[string]kpi.KPI) []v1alpha1.KPI {
	list := make([]v1alpha1.KPI, 0, len(measured))
	for name, f := range measured {
		list = append(list, v1alpha1.KPI{Name: name, KPIValue: v1alpha1.KPIValueOf(f)})
	}
	slices.SortFunc(list, func(a, b v1alpha1.KPI) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// due reports whether KPIs have to be written: at once if one came or went, if a
// price or what people say has changed, and otherwise after a while.
func due(old, next []v1alpha1.KPI, age time.Duration) bool {
	if len(old) != len(next) {
		return true
	}
	wandered := false
	for i, f := range next {
		was := old[i]
		if f.Name != was.Name || f.Unit != was.Unit || f.Value != was.Value && (strings.HasPrefix(f.Name, "price") || f.Name == kpi.Carbon) {
			return true
		}
		wandered = wandered || f.Value != was.Value
	}
	// A clock that was set back must not keep the KPIs from being written.
	age = age.Abs()
	return age >= refresh || wandered && age >= interval
}
