// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints has the providers of a broker with Liqo 1.x reach the endpoints of its consumers. Liqo itself passes none of them on,
// because they are on a node that the broker does not have. Beside each EndpointSlice of a consumer there is a companion that names no
// node, and for each address an IP that opens it to peers.
//
// It does not decide which addresses those are: package transit of the core does.
package endpoints

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/transit"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/transit/namespaces"
)

const (
	// callsAtOnce is how many slices of a consumer are read at a time that were not kept, and pause when the next ones are.
	callsAtOnce = 50
	pause       = time.Second
	// quiet is how long nothing is logged of a consumer again, and maxNamed how many of its namespaces are named.
	quiet    = 5 * time.Minute
	maxNamed = 5
)

// Reconciler keeps companions and IPs in all twin namespaces of one consumer.
type Reconciler struct {
	cfg Config

	mu   sync.Mutex
	said map[cluster.ID]time.Time // When it was logged of a consumer that it has too much.
}

// Config is what the controller needs.
type Config struct {
	// Client reads from a cache with the indexes of Liqo 1.x, which keeps of EndpointSlices what Kept lets it.
	Client client.Client
	Kept   *Kept
	// Live reads an EndpointSlice that was not kept.
	Live client.Reader
	// Own is this cluster.
	Own cluster.ID
	// MaxAddresses is how many addresses of a consumer are opened, in all of its namespaces.
	MaxAddresses int
	Clock        clock.PassiveClock
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler { return &Reconciler{cfg: cfg, said: map[cluster.ID]time.Time{}} }

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	ofConsumer := namespaces.OfConsumer(cfg.Client)
	ofNetwork := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: string(v1.LeadsTo(o))}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("endpoints").
		Watches(&corev1.Namespace{}, ofConsumer).
		Watches(&discoveryv1.EndpointSlice{}, ofConsumer).
		Watches(&api.IP{}, ofConsumer, builder.WithPredicates(predicate.NewPredicateFuncs(v1.IsTransit))).
		Watches(&api.NamespaceOffloading{}, ofConsumer).
		Watches(&api.Configuration{}, ofNetwork).
		Complete(New(cfg))
	if err != nil {
		return fmt.Errorf("set up the endpoints controller: %w", err)
	}
	return nil
}

// twin is what there is in one twin namespace of a consumer.
type twin struct {
	namespace string
	// written are the slices of the consumer, with all that they say as far as that is known, and companions what is kept beside them.
	written    []discoveryv1.EndpointSlice
	companions map[string]*discoveryv1.EndpointSlice
	offloaded  bool
	// unknown is how many of the slices say what is not known.
	unknown int
}

// Reconcile makes companions and IPs in the twin namespaces of a consumer what they are to be: what it has in one may leave no room for
// another. Of a namespace that is offloaded nowhere nothing is opened. What cannot be written in one keeps nothing of another from it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// What there is.
	consumer := cluster.ID(req.Name)
	calls := callsAtOnce
	twins, err := r.twins(ctx, consumer, &calls)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(twins) == 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.said, consumer)
		return ctrl.Result{}, nil
	}
	pods, err := v1.PodsSeen(ctx, r.cfg.Client, r.cfg.Own, consumer)
	if err != nil {
		return ctrl.Result{}, err
	}
	var written []discoveryv1.EndpointSlice
	for i := range twins {
		if twins[i].offloaded {
			written = append(written, twins[i].written...)
		}
	}
	// What of it is opened, and that.
	openings := transit.Open(written, pods, r.cfg.MaxAddresses)
	r.say(ctx, consumer, twins, openings)
	var failed []error
	for i := range twins {
		opening := openings[twins[i].namespace]
		if opening == nil {
			opening = &transit.Opening{}
		}
		failed = append(failed, r.reach(ctx, &twins[i], opening))
	}
	result := ctrl.Result{}
	if calls == 0 {
		result.RequeueAfter = pause
	}
	return result, errors.Join(failed...)
}

// twins returns what there is in the twin namespaces of a consumer, and makes up to so many calls for what is not kept of it.
func (r *Reconciler) twins(ctx context.Context, consumer cluster.ID, calls *int) ([]twin, error) {
	var all corev1.NamespaceList
	if err := r.cfg.Client.List(ctx, &all, client.MatchingLabels{liqo.LabelRemoteClusterID: string(consumer)}); err != nil {
		return nil, fmt.Errorf("list the namespaces of consumer %s: %w", consumer, err)
	}
	var twins []twin
	for i := range all.Items {
		ns := &all.Items[i]
		if _, is := liqo.TwinOf(ns); !is || !ns.DeletionTimestamp.IsZero() {
			continue
		}
		t := twin{namespace: ns.Name}
		var there discoveryv1.EndpointSliceList
		if err := r.cfg.Client.List(ctx, &there, client.InNamespace(ns.Name)); err != nil {
			return nil, fmt.Errorf("list the EndpointSlices in namespace %s: %w", ns.Name, err)
		}
		t.written, t.companions = sorted(there.Items, consumer)
		var err error
		if t.offloaded, err = v1.IsOffloaded(ctx, r.cfg.Client, ns.Name); err != nil {
			return nil, err
		}
		if err := r.complete(ctx, consumer, &t, calls); err != nil {
			return nil, err
		}
		twins = append(twins, t)
	}
	return twins, nil
}

// complete has the slices of a consumer in one namespace say all that they say, as far as it is kept; for one that is not offloaded no
// call is made.
func (r *Reconciler) complete(ctx context.Context, consumer cluster.ID, t *twin, calls *int) error {
	if !t.offloaded {
		calls = new(int)
	}
	for i := range t.written {
		s, is, err := r.cfg.Kept.Whole(ctx, r.cfg.Live, string(consumer), &t.written[i], calls)
		if err != nil {
			return err
		}
		if t.written[i] = *s; !is && t.offloaded {
			t.unknown++
		}
	}
	return nil
}

// say logs that a consumer has more than is opened, at most once in a while.
func (r *Reconciler) say(ctx context.Context, consumer cluster.ID, twins []twin, openings map[string]*transit.Opening) {
	var opened, inNamespace, inAll, unknown int
	var named []string
	for i := range twins {
		t := &twins[i]
		less := t.unknown > 0
		if o := openings[t.namespace]; o != nil {
			opened, inNamespace, inAll = opened+len(o.Addresses), inNamespace+o.InNamespace, inAll+o.InAll
			less = less || o.InNamespace+o.InAll > 0
		}
		if unknown += t.unknown; less && len(named) < maxNamed {
			named = append(named, t.namespace)
		}
	}
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, was := r.said[consumer]; len(named) == 0 || was && now.Sub(last) < quiet {
		return
	}
	r.said[consumer] = now
	ctrl.LoggerFrom(ctx).Info("Providers do not reach all endpoints of a consumer: it has too many", "consumer", consumer,
		"addressesOpened", opened, "mostAddresses", r.cfg.MaxAddresses, "mostInNamespace", transit.MaxInNamespace,
		"endpointsBeyondNamespace", inNamespace, "endpointsBeyondConsumer", inAll,
		"slicesNotKept", unknown, "mostBytesKept", r.cfg.Kept.Most(), "namespaces", named)
}

// reach makes companions and IPs in one namespace what they are to be.
func (r *Reconciler) reach(ctx context.Context, t *twin, opening *transit.Opening) error {
	// An address is opened before somebody is told of it, and closed when nobody is told any more: also where a consumer has taken the name
	// of what is to be written, or it could have one address after the other opened.
	open := slices.Concat(opening.Addresses, addressesIn(t.companions))
	failed := r.open(ctx, t.namespace, opening)
	if failed == nil {
		failed = r.tell(ctx, t.written, t.companions, opening)
	}
	if failed == nil {
		open = opening.Addresses
	}
	return errors.Join(failed, r.closeOthers(ctx, t.namespace, open))
}

// addressesIn returns the addresses of which companions tell.
func addressesIn(companions map[string]*discoveryv1.EndpointSlice) []netip.Addr {
	var all []netip.Addr
	for _, c := range companions {
		for i := range c.Endpoints {
			for _, text := range c.Endpoints[i].Addresses {
				if address, err := netip.ParseAddr(text); err == nil {
					all = append(all, address)
				}
			}
		}
	}
	return all
}

// sorted returns the slices of a consumer, and what is kept beside them, by name.
func sorted(
	all []discoveryv1.EndpointSlice, consumer cluster.ID,
) (written []discoveryv1.EndpointSlice, ours map[string]*discoveryv1.EndpointSlice) {
	ours = map[string]*discoveryv1.EndpointSlice{}
	for i := range all {
		switch {
		case v1.EndpointsOf(&all[i], consumer):
			written = append(written, all[i])
		case v1.IsCompanion(&all[i]):
			ours[all[i].Name] = &all[i]
		}
	}
	return written, ours
}

// open creates the IPs that are missing, and deletes those that somebody has changed, which are created again: what one opens never
// changes.
func (r *Reconciler) open(ctx context.Context, namespace string, opening *transit.Opening) error {
	for _, address := range opening.Addresses {
		want, is := v1.ForgeIP(namespace, address), &api.IP{}
		key := client.ObjectKeyFromObject(want)
		switch err := r.cfg.Client.Get(ctx, key, is); {
		case apierrors.IsNotFound(err):
			if err := r.cfg.Client.Create(ctx, want); err != nil {
				return fmt.Errorf("create IP %s: %w", key, err)
			}
		case err != nil:
			return fmt.Errorf("get IP %s: %w", key, err)
		case !v1.Opens(is, want):
			if err := r.cfg.Client.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete IP %s: %w", key, err)
			}
		}
	}
	return nil
}

// closeOthers deletes the IPs of addresses that are not to be open.
func (r *Reconciler) closeOthers(ctx context.Context, namespace string, open []netip.Addr) error {
	wanted := map[string]bool{}
	for _, address := range open {
		wanted[v1.ForgeIP(namespace, address).Name] = true
	}
	var are api.IPList
	if err := r.cfg.Client.List(ctx, &are, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list the IPs in namespace %s: %w", namespace, err)
	}
	for i := range are.Items {
		is := &are.Items[i]
		if !v1.IsTransit(is) || wanted[is.Name] || !is.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.cfg.Client.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete IP %s: %w", client.ObjectKeyFromObject(is), err)
		}
	}
	return nil
}

// tell writes the companions, and deletes those that are not wanted any more. One that cannot be written keeps no other from it.
func (r *Reconciler) tell(
	ctx context.Context, written []discoveryv1.EndpointSlice, there map[string]*discoveryv1.EndpointSlice, opening *transit.Opening,
) error {
	var failed []error
	for i := range written {
		endpoints := opening.Slices[written[i].Name]
		if len(endpoints) == 0 {
			continue
		}
		want := companion(&written[i], endpoints)
		is := there[want.Name]
		delete(there, want.Name)
		if err := r.write(ctx, is, want); err != nil {
			failed = append(failed, fmt.Errorf("write EndpointSlice %s: %w", client.ObjectKeyFromObject(want), err))
		}
	}
	for _, is := range there {
		if err := r.cfg.Client.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("delete EndpointSlice %s: %w", client.ObjectKeyFromObject(is), err))
		}
	}
	return errors.Join(failed...)
}

// write writes one companion, in the place of what is there, which is nil if there is none. One of its name that somebody else has made
// stays, and is an error. The family of addresses, which never changes, is the same for all.
func (r *Reconciler) write(ctx context.Context, is, want *discoveryv1.EndpointSlice) error {
	if is == nil {
		return r.cfg.Client.Create(ctx, want)
	}
	changed := is.DeepCopy()
	changed.Labels, changed.OwnerReferences, changed.Endpoints, changed.Ports = want.Labels, want.OwnerReferences, want.Endpoints, want.Ports
	if equality.Semantic.DeepEqual(is, changed) {
		return nil
	}
	return r.cfg.Client.Patch(ctx, changed, client.MergeFromWithOptions(is, client.MergeFromWithOptimisticLock{}))
}

// companion returns what is kept beside a slice. It goes with it.
func companion(of *discoveryv1.EndpointSlice, endpoints []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	digest := sha256.Sum256([]byte(of.Name))
	c := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: v1.TransitPrefix + hex.EncodeToString(digest[:8]),
			Labels: map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged, discoveryv1.LabelManagedBy: liqo.BrokerManaged},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice", Name: of.Name, UID: of.UID,
			}},
		},
		AddressType: of.AddressType, Endpoints: endpoints, Ports: of.Ports,
	}
	if service := of.Labels[discoveryv1.LabelServiceName]; service != "" {
		c.Labels[discoveryv1.LabelServiceName] = service
	}
	return c
}
