// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// Requests are what a consumer asks this cluster for. Both lists have the same order.
type Requests struct {
	Values []grant.Request
	// Slices are the objects that say so. They share memory with a cache, and are not to be changed.
	Slices []*api.ResourceSlice
}

// ToldViews returns the views that a consumer is told by the ResourceSlices by which it asks, by their keys. What cannot be read is left
// out.
func (r *Requests) ToldViews() map[string]netip.Prefix {
	told := map[string]netip.Prefix{}
	for _, s := range r.Slices {
		views, _ := liqo.ViewsOf(s.Status.NodeLabels)
		maps.Copy(told, views)
	}
	return told
}

// RequestsBy returns what a peer asks a cluster for by ResourceSlices of the class [api.SliceClassBroker]. Those of others are for others
// to answer, and one that names another cluster counts for nothing.
func RequestsBy(ctx context.Context, objects client.Reader, own cluster.ID, peer *liqo.Peer) (Requests, error) {
	var requests Requests
	if peer.Tenant == "" {
		return requests, nil
	}
	var all api.ResourceSliceList
	var tenants api.TenantList
	for _, list := range []client.ObjectList{&all, &tenants} {
		if err := objects.List(ctx, list, client.InNamespace(peer.Tenant), client.UnsafeDisableDeepCopy); err != nil {
			return requests, fmt.Errorf("list %T in namespace %s: %w", list, peer.Tenant, err)
		}
	}
	tenant := firstMade(tenants.Items, func(t *api.Tenant) bool { return t.Spec.ClusterID == string(peer.ID) })
	cordoned := tenant != nil && tenant.Spec.TenantCondition == api.TenantCordoned
	for i := range all.Items {
		s := &all.Items[i]
		if FromConsumer(s) && s.Spec.Class == api.SliceClassBroker && CheckSlice(s, peer.ID, own) == nil {
			requests.Values = append(requests.Values, requestOf(s, cordoned))
			requests.Slices = append(requests.Slices, s)
		}
	}
	return requests, nil
}

// requestOf returns what a ResourceSlice of a consumer asks for.
func requestOf(s *api.ResourceSlice, cordoned bool) grant.Request {
	g := GrantOf(s)
	r := grant.Request{
		Name: s.Name, Made: s.CreationTimestamp.Time,
		Wanted: resources.Bounded(g.Requested), Unreadable: lenient.UnreadableIn(s, "spec.resources"),
		Authenticated: g.Authentication.Accepted, Frozen: cordoned || isCordoned(s), Ending: !s.DeletionTimestamp.IsZero(), Granted: g.Granted,
	}
	switch {
	case g.Resources.Accepted:
		r.Verdict = grant.Accepted
	case g.Resources.Denied:
		r.Verdict = grant.Denied
	}
	return r
}

// isCordoned reports whether people have cordoned a ResourceSlice (hasToBeCordoned in
// liqo/pkg/liqo-controller-manager/quotacreator-controller@v1.2.0).
func isCordoned(s *api.ResourceSlice) bool {
	wanted, cordoned := s.Annotations[api.AnnotationCordon]
	return cordoned && !slices.Contains([]string{"false", "False", "0"}, wanted)
}

// Answered returns a ResourceSlice as it is with an answer, at a time, or nil if it is so already, and after how long it has to be looked
// at again, because classes wait; zero if none do. What Liqo decides of it stays: whoever writes the result must see that nobody has
// written in between, because conditions are one list, and Liqo writes all of the status.
//
// Nothing of a kind is copied to a provider that lists none of its classes. Volumes stay with the consumer, so that none of storage are
// listed. Of ingresses and load balancers those are listed that providers have for this cluster. What a node says of a provider of which
// nothing is known stays: for another text Liqo restarts the consumer's virtual kubelet, and the provider may come back. For the same
// reason other classes are told classInterval after the last ones at the earliest. When that was, the condition says.
func Answered(
	s *api.ResourceSlice, a grant.Answer, classes NodeClasses, now time.Time,
) (answered *api.ResourceSlice, wait time.Duration) {
	if a.Verdict == grant.Open {
		return nil, 0
	}
	// What there is for it.
	answered = s.DeepCopy()
	was, is, changed := &s.Status, &answered.Status, false
	var labels, selector map[string]string
	var ingress []api.IngressClass
	var loadBalancer []api.LoadBalancerClass
	switch {
	case a.Verdict != grant.Accepted:
		labels = liqo.LabelViews(nil, a.Views) // The consumer has to install them first.
	case a.Unknown:
		labels, selector = s.Status.NodeLabels, s.Status.NodeSelector
		ingress, loadBalancer = was.IngressClasses, was.LoadBalancerClasses
	default:
		ingress, loadBalancer = classes.on(a.Provider).listed(was)
		if !lists(was, ingress, loadBalancer) {
			if wait = classesWait(was, now); wait > 0 {
				ingress, loadBalancer = was.IngressClasses, was.LoadBalancerClasses
			}
		}
		if a.Provider != "" {
			labels = map[string]string{liqo.LabelProvider: string(a.Provider)}
			selector = map[string]string{liqo.LabelRemoteClusterID: string(a.Provider)}
		}
		labels = liqo.LabelViews(labels, a.Views)
	}

	labels = liqo.LabelNodes(labels, a.Nodes)

	// What of that is not written yet.
	set := func(same bool, write func()) {
		if !same {
			write()
			changed = true
		}
	}
	set(resources.Same(was.Resources, a.Granted), func() { is.Resources = a.Granted })
	set(maps.Equal(was.NodeLabels, labels), func() { is.NodeLabels = labels })
	set(maps.Equal(was.NodeSelector, selector), func() { is.NodeSelector = selector })
	set(len(was.StorageClasses) == 0, func() { is.StorageClasses = nil })
	same := lists(was, ingress, loadBalancer)
	set(same, func() { is.IngressClasses, is.LoadBalancerClasses = ingress, loadBalancer })
	if !setCondition(is, a, !same, now) && !changed {
		return nil, wait
	}
	return answered, wait
}

// setCondition writes into a status what was decided of the resources, once, and reports whether that changes it. The condition is as old
// as its status, or as the classes beside it if others are told.
func setCondition(status *api.ResourceSliceStatus, a grant.Answer, otherClasses bool, now time.Time) (changed bool) {
	want := api.ResourceSliceCondition{
		Type: api.SliceResources, Status: api.SliceDenied, Reason: string(a.Reason), Message: a.Message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if a.Verdict == grant.Accepted {
		want.Status = api.SliceAccepted
	}
	is := func(c api.ResourceSliceCondition) bool { return c.Type == api.SliceResources }
	at := slices.IndexFunc(status.Conditions, is)
	if at < 0 {
		status.Conditions = append(status.Conditions, want)
		return true
	}
	was := &status.Conditions[at]
	if was.Status == want.Status && !otherClasses {
		want.LastTransitionTime = was.LastTransitionTime
	}
	changed = *was != want
	*was = want
	// Nothing else keeps somebody from writing another one, which others may go by.
	once := slices.Concat(status.Conditions[:at+1], slices.DeleteFunc(slices.Clone(status.Conditions[at+1:]), is))
	changed = changed || len(once) != len(status.Conditions)
	status.Conditions = once
	return changed
}

// NewlyDenied reports whether an answer denies what was not denied for the same reason, so that people are told once.
func NewlyDenied(s *api.ResourceSlice, a grant.Answer) bool {
	was := decision(s, api.SliceResources)
	return a.Verdict == grant.Denied && (!was.Denied || was.Reason != string(a.Reason))
}

// RoleChanged reports whether an update of one of Liqo's objects changes what a peer is to this cluster, other than by its coming and
// going.
func RoleChanged(before, after client.Object) bool {
	was, is := before.(*api.ForeignCluster)
	now, still := after.(*api.ForeignCluster)
	return is && still && was.Status.Role != now.Status.Role
}
