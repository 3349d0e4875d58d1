// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reports reads, on a broker with Liqo 1.x, what the agents of consumers tell: which views of providers they have installed, and
// how far providers are, which it writes down. It tells people of reports that cannot be read, and of providers to which there are several
// networks.
//
// It does not decide what follows from a report: package grant of the core, and policies, do.
package reports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/pkg/roundtrips"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// reasonUnreadable is the reason of the event on a Consumer.
const reasonUnreadable = "ReportUnreadable"

// keyBytes make keys of views that nobody can guess, and that are the same for two providers by no accident.
const keyBytes = 10

// Config is what is needed to read reports.
type Config struct {
	// Client reads all but reports, and Told the reports, both from caches; Reader's line is Liqo 1.x. Client patches the status of Consumers.
	Client   client.Client
	Told     client.Reader
	Reader   *snapshot.Reader
	Recorder record.EventRecorder
	Clock    clock.PassiveClock
}

// Reports are those of all consumers. They may be used concurrently.
type Reports struct {
	cfg        Config
	roundTrips *roundtrips.Recorder
	// said is what people were told of the report of a consumer, which is written again each minute.
	said news
}

// New returns Reports.
func New(cfg Config) *Reports {
	return &Reports{cfg: cfg, roundTrips: roundtrips.New(cfg.Client, cfg.Clock)}
}

// Cached returns what is kept in memory of ConfigMaps: those into which consumers report, and of them no more than is read.
func Cached() cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, report.Name), Transform: strip}
}

// strip keeps of a ConfigMap the report. One that is too long stays so by a byte.
func strip(o any) (any, error) {
	cm, is := o.(*corev1.ConfigMap)
	if !is {
		return o, nil
	}
	cm.ManagedFields, cm.Annotations, cm.Labels, cm.BinaryData = nil, nil, nil, nil
	text := cm.Data[report.Key]
	if len(text) > report.MaxBytes {
		text = strings.Clone(text[:report.MaxBytes+1]) // Else all of it would stay in memory.
	}
	cm.Data = map[string]string{report.Key: text}
	return cm, nil
}

// Setup registers with a manager the controllers that write down what is reported of round-trip times, and tell people of reports which
// cannot be read, and of providers to which there are several networks.
func Setup(mgr ctrl.Manager, cfg Config) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("reports").
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(watch.OfTenant(cfg.Reader)), builder.WithPredicates(Changed())).
		Watches(&v1alpha1.Consumer{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(gone())).
		Complete(New(cfg))
	if err != nil {
		return fmt.Errorf("set up the reports controller: %w", err)
	}
	return setupNetworks(mgr, cfg)
}

// Views returns under which prefixes this cluster sees the pods of providers, by keys that do not tell whose they are, and what a consumer
// has told of them. A consumer that need not acknowledge them has them as well: others let it reach what it is told.
func (r *Reports) Views(ctx context.Context, consumer cluster.ID) (grant.Views, error) {
	var c v1alpha1.Consumer
	if err := r.cfg.Client.Get(ctx, client.ObjectKey{Name: string(consumer)}, &c); client.IgnoreNotFound(err) != nil {
		return grant.Views{}, fmt.Errorf("get consumer %s: %w", consumer, err)
	}
	granted, err := r.granted(ctx, consumer)
	if err != nil {
		return grant.Views{}, err
	}
	if !c.HasToAcknowledge() {
		return grant.Views{Granted: granted}, nil
	}
	told, _, err := r.told(ctx, consumer)
	if err != nil {
		return grant.Views{}, err
	}
	return grant.Views{Asked: true, Granted: granted, Acknowledged: told.Views, Told: told.At, Now: r.cfg.Clock.Now()}, nil
}

// granted returns the views of all providers but the consumer itself that are reached.
func (r *Reports) granted(ctx context.Context, consumer cluster.ID) (map[cluster.ID]grant.View, error) {
	var providers v1alpha1.ProviderList
	if err := r.cfg.Client.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	pods, err := v1.ProviderPods(ctx, r.cfg.Client, r.cfg.Reader.Own())
	if err != nil {
		return nil, err
	}
	return grantedOf(providers.Items, pods, consumer), nil
}

// grantedOf returns the views of those providers but the consumer itself that are reached, given under which prefixes their pods are seen.
func grantedOf(providers []v1alpha1.Provider, pods map[cluster.ID]netip.Prefix, consumer cluster.ID) map[cluster.ID]grant.View {
	granted := map[cluster.ID]grant.View{}
	for i := range providers {
		p := &providers[i]
		id := cluster.ID(p.Name)
		prefix, seen := pods[id]
		if !seen || id == consumer || !isReached(p) {
			continue
		}
		granted[id] = grant.View{Key: keyOf(p.UID), Prefix: prefix}
	}
	return granted
}

// keyOf returns what the view of a provider is called. IDs of clusters can be guessed, and what is made of one with it; what the API server
// calls an object cannot.
func keyOf(provider types.UID) string {
	sum := sha256.Sum256([]byte(provider))
	return hex.EncodeToString(sum[:keyBytes])
}

// told returns what a consumer reports, in its tenant namespace and nowhere else, and what of that cannot be read. One that does not peer
// has told nothing.
func (r *Reports) told(ctx context.Context, consumer cluster.ID) (told report.Report, unreadable, err error) {
	peer, err := r.cfg.Reader.Peer(ctx, consumer)
	if err != nil || peer == nil {
		return report.Report{}, nil, err
	}
	return toldBy(ctx, r.cfg.Told, peer)
}

// toldBy returns what a peer reports. What it has told in a peering that has ended counts for nothing in the next one, in which it has no
// networks yet: by the peering, and not by the time, because each cluster has a clock of its own.
func toldBy(ctx context.Context, objects client.Reader, peer *liqo.Peer) (told report.Report, unreadable, err error) {
	if peer.Tenant == "" || !peer.Incoming.Exists {
		return report.Report{}, nil, nil
	}
	var cm corev1.ConfigMap
	key := client.ObjectKey{Namespace: peer.Tenant, Name: report.Name}
	if err := objects.Get(ctx, key, &cm); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return report.Report{}, nil, nil
		}
		return report.Report{}, nil, fmt.Errorf("get configmap %s: %w", key, err)
	}
	if !v1.IsOwnedBy(&cm, peer) || cm.Data[report.Key] == "" {
		return report.Report{}, nil, nil // Nobody has reported yet in this peering.
	}
	told, unreadable = report.Parse(cm.Data[report.Key])
	return told, unreadable, nil
}

// Reconcile writes down how far providers are from a consumer, and tells people what of its report cannot be read, when that is something
// else than before.
func (r *Reports) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var c v1alpha1.Consumer
	id := cluster.ID(req.Name)
	if err := r.cfg.Client.Get(ctx, req.NamespacedName, &c); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.said.isNews(id, "") // Who comes again under this name has told nothing yet.
			r.roundTrips.Forget(id)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get consumer %s: %w", id, err)
	}
	told, unreadable, err := r.told(ctx, id)
	if err != nil {
		return ctrl.Result{}, err
	}
	what := ""
	if unreadable != nil {
		what = unreadable.Error()
	}
	if r.said.isNews(id, what) {
		r.cfg.Recorder.Eventf(&c, corev1.EventTypeWarning, reasonUnreadable, "The report of the cluster's agent cannot be read: %s", what)
	}
	return ctrl.Result{}, r.recordRoundTrips(ctx, &c, told)
}

// recordRoundTrips writes down what a report says of how far providers are from a consumer, in the place of all that was said before. An
// old report says nothing, and what was written by it expires.
func (r *Reports) recordRoundTrips(ctx context.Context, c *v1alpha1.Consumer, told report.Report) error {
	if !grant.IsFresh(told.At, r.cfg.Clock.Now()) {
		return nil
	}
	id, took := cluster.ID(c.Name), map[cluster.ID]time.Duration{}
	if c.Status.Mode == v1alpha1.ModeOrchestrated { // No other may be told which clusters provide.
		providers, err := r.granted(ctx, id)
		if err != nil {
			return err
		}
		for i := range told.Links {
			l := &told.Links[i]
			if _, provides := providers[l.Cluster]; provides && isBelieved(l, told.At) {
				took[l.Cluster] = max(l.RoundTrip.Truncate(time.Microsecond), time.Microsecond)
			}
		}
	}
	return r.roundTrips.Record(ctx, id, took)
}

// isBelieved reports whether a link has a round-trip time that can be, and that was measured shortly before the report; one that has none
// has no time of it either. Both times are by the consumer's clock, so that it does not matter how wrong that is.
func isBelieved(l *report.Link, told time.Time) bool {
	return l.RoundTrip <= kpi.MaxRoundTrip && told.Sub(l.At).Abs() <= kpi.MaxRoundTripAge
}
