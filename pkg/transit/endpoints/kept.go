// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// patience is how long a cache waits, before it keeps a slice, until it knows whose the namespace is.
const patience = 10 * time.Second

// How many bytes a slice takes that is kept, besides what it says: itself, with its labels and what finds it, and each of its endpoints and
// ports.
const (
	bytesOfSlice    = 1280
	bytesOfEndpoint = 192
	bytesOfPort     = 112
)

// Kept bounds, in bytes, what a cache keeps of the EndpointSlices of each consumer: of what is beyond it keeps that a slice is there, and
// nothing of what the slice says. It may be used concurrently.
type Kept struct {
	most int64

	mu         sync.Mutex
	namespaces client.Reader // Nil as long as nothing is watched.
	slices     map[types.UID]kept
	used       map[string]int64 // By owners.
}

// kept is what is known of one slice.
type kept struct {
	// owner is the consumer, or the namespace while nobody knows whose that is.
	owner string
	// bytes is what it takes, and whole what it would take with all that it says.
	bytes, whole int64
	// read is the slice with all that it says, if the cache has it without: it has come back since.
	read *discoveryv1.EndpointSlice
}

// NewKept returns a Kept of so many bytes for each consumer.
func NewKept(most int64) *Kept {
	return &Kept{most: most, slices: map[types.UID]kept{}, used: map[string]int64{}}
}

// Most returns how many bytes are kept of each consumer.
func (k *Kept) Most() int64 { return k.most }

// Watch follows which slices are gone, and asks a cache, which is started later, whose their namespaces are.
func (k *Kept) Watch(ctx context.Context, c cache.Cache) error {
	k.mu.Lock()
	k.namespaces = c
	k.mu.Unlock()
	informer, err := c.GetInformer(ctx, &discoveryv1.EndpointSlice{})
	if err != nil {
		return fmt.Errorf("watch EndpointSlices: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: k.replaced, DeleteFunc: k.gone})
	if err != nil {
		return fmt.Errorf("watch EndpointSlices: %w", err)
	}
	return nil
}

// Bare takes out of an EndpointSlice of a consumer, before a cache keeps it, what nobody reads, and all that it says if the consumer has
// too much.
func (k *Kept) Bare(s *discoveryv1.EndpointSlice) {
	if v1.IsCompanion(s) {
		return
	}
	v1.BareEndpoints(s)
	owner := k.ownerOf(s.Namespace)
	k.mu.Lock()
	defer k.mu.Unlock()
	size := bytesOf(s)
	is := kept{owner: owner, bytes: size, whole: size}
	if isEmptied(s) {
		is.whole = max(is.whole, k.slices[s.UID].whole) // It comes from a cache.
	} else if !k.hasRoom(s.UID, &is) {
		empty(s)
		is.bytes = bytesOf(s)
		is.whole += is.bytes // What is read beside it.
	}
	k.noteSlice(s.UID, &is)
}

// Whole returns an EndpointSlice of a consumer with all that it says, and whether it is kept: with what the API server says of one that the
// cache has without, if there is room for it by now, and budget for one more call. Otherwise what it says is not known.
func (k *Kept) Whole(
	ctx context.Context, live client.Reader, consumer string, cached *discoveryv1.EndpointSlice, calls *int,
) (*discoveryv1.EndpointSlice, bool, error) {
	k.mu.Lock()
	is, known := k.slices[cached.UID]
	if known && is.owner != consumer { // Its namespace was not known when it came.
		is.owner = consumer
		k.noteSlice(cached.UID, &is)
	}
	again := is
	again.bytes = is.whole
	room := known && k.hasRoom(cached.UID, &again)
	k.mu.Unlock()
	switch {
	case !isEmptied(cached):
		return cached, true, nil
	case is.read != nil && is.read.ResourceVersion == cached.ResourceVersion:
		return is.read.DeepCopy(), true, nil
	case !room || *calls <= 0:
		return cached, false, nil
	}
	*calls--
	var s discoveryv1.EndpointSlice
	if err := live.Get(ctx, client.ObjectKeyFromObject(cached), &s); err != nil {
		return cached, false, client.IgnoreNotFound(fmt.Errorf("get EndpointSlice %s: %w", client.ObjectKeyFromObject(cached), err))
	}
	v1.BareEndpoints(&s)
	k.mu.Lock()
	defer k.mu.Unlock()
	// What has changed since comes by the cache; what is gone is gone.
	now, known := k.slices[s.UID]
	if s.ResourceVersion != cached.ResourceVersion || !known || now.owner != consumer {
		return cached, false, nil
	}
	now.whole = bytesOf(cached) + bytesOf(&s)
	now.bytes, now.read = now.whole, &s
	if !k.hasRoom(s.UID, &now) {
		return cached, false, nil
	}
	k.noteSlice(s.UID, &now)
	return s.DeepCopy(), true, nil
}

// hasRoom reports whether a slice can be kept as it is said to be. The caller holds the lock.
func (k *Kept) hasRoom(uid types.UID, is *kept) bool {
	used := k.used[is.owner] + is.bytes
	if was := k.slices[uid]; was.owner == is.owner {
		used -= was.bytes
	}
	return used <= k.most
}

// noteSlice notes what is kept of a slice. The caller holds the lock.
func (k *Kept) noteSlice(uid types.UID, is *kept) {
	k.forget(uid)
	k.slices[uid] = *is
	k.used[is.owner] += is.bytes
}

// forget notes that nothing is kept of a slice. The caller holds the lock.
func (k *Kept) forget(uid types.UID) {
	was, known := k.slices[uid]
	if !known {
		return
	}
	delete(k.slices, uid)
	if k.used[was.owner] -= was.bytes; k.used[was.owner] == 0 {
		delete(k.used, was.owner)
	}
}

// replaced notes that a slice is gone in whose place there is another one of its name.
func (k *Kept) replaced(was, is any) {
	before, one := was.(*discoveryv1.EndpointSlice)
	after, other := is.(*discoveryv1.EndpointSlice)
	if one && other && before.UID != after.UID {
		k.gone(before)
	}
}

// gone notes that a slice is gone.
func (k *Kept) gone(o any) {
	if last, is := o.(toolscache.DeletedFinalStateUnknown); is {
		o = last.Obj
	}
	if s, is := o.(*discoveryv1.EndpointSlice); is {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.forget(s.UID)
	}
}

// ownerOf returns by whom what is in a namespace is kept. What a slice says of it, any consumer may have written.
func (k *Kept) ownerOf(namespace string) string {
	k.mu.Lock()
	namespaces := k.namespaces
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var ns corev1.Namespace
	if namespaces != nil && namespaces.Get(ctx, client.ObjectKey{Name: namespace}, &ns) == nil {
		if consumer, is := liqo.TwinOf(&ns); is {
			return string(consumer)
		}
	}
	return "namespace/" + namespace // No cluster is called so.
}

// empty takes out of a slice all that it says. One that has no family of addresses no API server admits.
func empty(s *discoveryv1.EndpointSlice) { s.AddressType, s.Endpoints, s.Ports = "", nil, nil }

// isEmptied reports whether a slice was emptied.
func isEmptied(s *discoveryv1.EndpointSlice) bool { return s.AddressType == "" }

// bytesOf returns how many bytes a slice takes at most that is kept.
func bytesOf(s *discoveryv1.EndpointSlice) int64 {
	n := bytesOfSlice + 2*(len(s.Namespace)+len(s.Name))
	for _, value := range s.Labels {
		n += len(value)
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		n += bytesOfEndpoint
		for _, address := range e.Addresses {
			n += len(address)
		}
		if e.Hostname != nil {
			n += len(*e.Hostname)
		}
	}
	for i := range s.Ports {
		n += bytesOfPort
		for _, text := range []*string{s.Ports[i].Name, s.Ports[i].AppProtocol, (*string)(s.Ports[i].Protocol)} {
			if text != nil {
				n += len(*text)
			}
		}
	}
	return int64(n)
}
