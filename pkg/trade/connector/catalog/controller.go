// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/listings"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/pages"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// leaseStep is how much later a lease must end to be written.
	leaseStep = time.Minute
	// tokenKey is the key of an enrolment token in its Secret.
	tokenKey = "token"
)

// Setup registers the controller with a manager, which runs the Catalog that it returns.
func Setup(mgr ctrl.Manager, cfg Config) (*Catalog, error) {
	c, err := New(cfg)
	if err == nil {
		err = mgr.Add(c)
	}
	if err == nil {
		err = ctrl.NewControllerManagedBy(mgr).
			Named("registry").
			For(&connectorv1alpha1.Registry{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			WatchesRawSource(source.Channel(c.woken, &handler.EnqueueRequestForObject{})).
			Complete(c)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the controller of registries: %w", err)
	}
	return c, nil
}

// wake has a registry looked at soon. It does not block: one that is not woken is looked at in a few seconds anyway.
func (c *Catalog) wake(registry string) {
	select {
	case c.woken <- event.GenericEvent{Object: &connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: registry}}}:
	default:
	}
}

// Reconcile follows a registry as its Registry says, remembers what it has shown, and says how that goes. It is for one worker.
func (c *Catalog) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	registry := &connectorv1alpha1.Registry{}
	err := c.cfg.Reader.Get(ctx, req.NamespacedName, registry)
	switch {
	case apierrors.IsNotFound(err) || err == nil && !registry.DeletionTimestamp.IsZero():
		c.leave(req.Name)
		return ctrl.Result{}, nil // Its pages are deleted with it.
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("get registry %s: %w", req.Name, err)
	}
	stored := registry.Status.DeepCopy()
	f, invalid, err := c.follow(ctx, registry)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("follow registry %s: %w", req.Name, err)
	}
	if invalid != nil {
		c.leave(req.Name)
		c.say(registry, connectorv1alpha1.ConditionEnrolled, metav1.ConditionFalse, connectorv1alpha1.ReasonInvalidRegistry, invalid.Error())
		c.say(registry, connectorv1alpha1.ConditionFollowing, metav1.ConditionFalse, connectorv1alpha1.ReasonInvalidRegistry, invalid.Error())
	} else {
		if err := c.flush(ctx, f, &registry.Status); err != nil {
			return ctrl.Result{}, fmt.Errorf("remember what registry %s has shown: %w", req.Name, err)
		}
		c.describeRegistry(registry, f)
	}
	registry.Status.ObservedGeneration = registry.Generation
	if !equality.Semantic.DeepEqual(stored, &registry.Status) {
		if err := c.cfg.Client.Status().Update(ctx, registry); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("write the status of registry %s: %w", req.Name, err)
		} else if err == nil {
			conditions.Recorder{Events: c.cfg.Events, Kind: readiness.Kind}.Tell(ctx, registry, stored.Conditions, registry.Status.Conditions)
		}
	}
	return ctrl.Result{RequeueAfter: flushInterval}, nil
}

// follow returns the follower of a registry, which has begun. Invalid is what is wrong with the spec.
func (c *Catalog) follow(ctx context.Context, registry *connectorv1alpha1.Registry) (f *follower, invalid, err error) {
	bounds, err := c.share(ctx)
	if err != nil {
		return nil, nil, err
	}
	// One that follows what is asked for goes on.
	c.mu.RLock()
	f = c.followers[registry.Name]
	c.mu.RUnlock()
	if f != nil && f.of.UID == registry.UID && f.of.Generation == registry.Generation && f.bounds == bounds {
		return f, nil, nil
	}
	token, invalid, err := c.token(ctx, registry.Spec.TokenSecret.Name)
	if invalid != nil || err != nil {
		return nil, invalid, err
	}
	// Another one takes its place when it has ended, and goes on where that was, if it is the same registry.
	last := pages.Stored{Position: registry.Status.Position, Parties: int(registry.Status.Parties), Offers: int(registry.Status.Offers)}
	if f != nil {
		f.join()
		if f.of.UID == registry.UID {
			if last, _, err = f.cache.Flush(ctx, c.cfg.Client, c.cfg.Reader); err != nil {
				return nil, nil, err
			}
		}
		c.leave(registry.Name)
	}
	if f, invalid = c.newFollower(registry.DeepCopy(), token, bounds); invalid != nil {
		return nil, invalid, nil
	}
	if err := c.begin(ctx, f, last); err != nil {
		return nil, nil, err
	}
	// From here on it is told what this cluster offers.
	c.mu.Lock()
	c.followers[registry.Name] = f
	own := c.own
	c.mu.Unlock()
	f.want(own)
	return f, nil, nil
}

// share returns how much may be kept of each registry that there is.
func (c *Catalog) share(ctx context.Context) (listings.Bounds, error) {
	all := &connectorv1alpha1.RegistryList{}
	if err := c.cfg.Client.List(ctx, all); err != nil {
		return listings.Bounds{}, fmt.Errorf("list registries: %w", err)
	}
	n := 0
	for i := range all.Items {
		if all.Items[i].DeletionTimestamp.IsZero() {
			n++
		}
	}
	return c.bounds(n), nil
}

// token returns the enrolment token in a Secret; none if the Secret has no name. Invalid is that it is not there.
func (c *Catalog) token(ctx context.Context, name string) (token string, invalid, err error) {
	if name == "" {
		return "", nil, nil
	}
	secret := &corev1.Secret{}
	err = c.cfg.Reader.Get(ctx, client.ObjectKey{Namespace: c.cfg.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err), err == nil && len(secret.Data[tokenKey]) == 0:
		return "", fmt.Errorf("spec.tokenSecret: there is no Secret %s/%s with a key %s", c.cfg.Namespace, name, tokenKey), nil
	case err != nil:
		return "", nil, fmt.Errorf("get Secret %s/%s: %w", c.cfg.Namespace, name, err)
	}
	return string(secret.Data[tokenKey]), nil, nil
}

// leave ends the use of a registry.
func (c *Catalog) leave(name string) {
	c.mu.Lock()
	f := c.followers[name]
	delete(c.followers, name)
	c.mu.Unlock()
	if f != nil {
		f.join()
		c.forgetRegistry(name)
	}
}

// flush writes the pages that have changed, if it is time for that, and puts into the status how far the registry was followed with them.
func (c *Catalog) flush(ctx context.Context, f *follower, status *connectorv1alpha1.RegistryStatus) error {
	now := c.cfg.Clock.Now()
	if now.Before(f.flushAt) {
		return nil
	}
	stored, written, err := f.cache.Flush(ctx, c.cfg.Client, c.cfg.Reader)
	if err != nil {
		return err
	}
	f.flushAt = now.Add(max(flushInterval, time.Duration(written)*time.Second/rate))
	status.Position, status.Parties, status.Offers = stored.Position, int32(stored.Parties), int32(stored.Offers) //nolint:gosec // Both are bounded.
	return nil
}

// describeRegistry says how the use of a registry goes.
func (c *Catalog) describeRegistry(registry *connectorv1alpha1.Registry, f *follower) {
	published, watched, status := f.publisher.Status(), f.watching(c.cfg.Clock.Now()), &registry.Status
	if until := published.LeaseUntil; until.IsZero() {
		status.LeaseTime = nil
	} else if status.LeaseTime == nil || until.Sub(status.LeaseTime.Time) >= leaseStep {
		status.LeaseTime = &metav1.Time{Time: until.Truncate(time.Second)}
	}
	value, reason, message := enrolled(published)
	c.say(registry, connectorv1alpha1.ConditionEnrolled, value, reason, message)

	value, reason, message = metav1.ConditionUnknown, connectorv1alpha1.ReasonUnreachable, "The catalog of the registry has not come yet."
	switch {
	case watched.misbehaviour != nil:
		value, reason, message = metav1.ConditionFalse, connectorv1alpha1.ReasonMisbehaving, watched.misbehaviour.Error()
	case watched.failure != nil && refused(watched.failure):
		value, reason, message = metav1.ConditionFalse, connectorv1alpha1.ReasonRefused, watched.failure.Error()
	case watched.failure != nil:
		value, reason, message = metav1.ConditionFalse, connectorv1alpha1.ReasonUnreachable, watched.failure.Error()
	case watched.reached:
		value, reason, message = metav1.ConditionTrue, connectorv1alpha1.ReasonFollowing, "What the registry shows is followed."
	}
	c.say(registry, connectorv1alpha1.ConditionFollowing, value, reason, message)

	switch {
	case watched.leftOut > 0:
		c.say(registry, connectorv1alpha1.ConditionComplete, metav1.ConditionFalse, connectorv1alpha1.ReasonNoRoom, fmt.Sprintf(
			"%d of the parties and offers that the registry shows are left out: what it shows may take %s of memory here, and what each "+
				"party shows %s.",
			watched.leftOut, mebibytes(f.bounds.Registry), mebibytes(f.bounds.Party)))
	case watched.reached: // Until then it is as it was.
		c.say(registry, connectorv1alpha1.ConditionComplete, metav1.ConditionTrue, connectorv1alpha1.ReasonAllKept,
			"All that the registry shows is kept.")
	}
}

// mebibytes writes a number of bytes for people.
func mebibytes(bytes int) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// enrolled says whether the registry knows this cluster.
func enrolled(s registryclient.PublisherStatus) (value metav1.ConditionStatus, reason, message string) {
	switch {
	case s.Error != nil && refused(s.Error):
		return metav1.ConditionFalse, connectorv1alpha1.ReasonRefused, s.Error.Error()
	case s.Error != nil:
		return metav1.ConditionFalse, connectorv1alpha1.ReasonUnreachable, s.Error.Error()
	case s.State == registryv1.Approved:
		return metav1.ConditionTrue, connectorv1alpha1.ReasonEnrolled, "The registry has approved this cluster."
	case s.State == registryv1.Pending:
		return metav1.ConditionFalse, connectorv1alpha1.ReasonAwaitsAdmission, "The administrator of the registry has to approve this cluster."
	case s.State == registryv1.Revoked:
		return metav1.ConditionFalse, connectorv1alpha1.ReasonRevoked, "The administrator of the registry has revoked this cluster."
	default:
		return metav1.ConditionUnknown, connectorv1alpha1.ReasonUnreachable, "The registry has not answered yet."
	}
}

// refused reports whether a registry has answered, and does not want to.
func refused(err error) bool {
	r := registryclient.Refused(err)
	return r != nil && r.Status < http.StatusInternalServerError
}

// say sets a condition.
func (c *Catalog) say(registry *connectorv1alpha1.Registry, condition string, value metav1.ConditionStatus, reason, message string) {
	conditions.Set(&registry.Status.Conditions, registry.Generation,
		metav1.Condition{Type: condition, Status: value, Reason: reason, Message: message})
}
