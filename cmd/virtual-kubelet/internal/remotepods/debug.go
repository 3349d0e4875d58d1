// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

// reasonDebugNotRun is the reason of an event about ephemeral containers that do not start.
const reasonDebugNotRun = "DebugContainerNotRun"

// debugged remembers of which ephemeral containers was told that they do not start. The zero value
// is ready for use, by any number of goroutines.
type debugged struct {
	mu sync.Mutex
	// told counts them, by pod; nobody removes one from a pod.
	told map[types.NamespacedName]toldOf
}

// toldOf is what was told about a pod.
type toldOf struct {
	pod   types.UID
	count int
}

// news returns the ephemeral containers of a pod that were not told of, and remembers that they are now.
func (d *debugged) news(pod *corev1.Pod) []corev1.EphemeralContainer {
	all := pod.Spec.EphemeralContainers
	if len(all) == 0 {
		return nil // Most pods.
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	before := d.told[key]
	if before.pod != pod.UID {
		before.count = 0
	}
	if d.told == nil {
		d.told = map[types.NamespacedName]toldOf{}
	}
	d.told[key] = toldOf{pod.UID, len(all)}
	return all[min(before.count, len(all)):]
}

// forget forgets pods, of which a function says which they are.
func (d *debugged) forget(is func(types.NamespacedName) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.told {
		if is(key) {
			delete(d.told, key)
		}
	}
}

// tellDebug writes an event about ephemeral containers of a pod that runs in the foreign cluster, which
// lets nobody else change it. kubectl debug has said nothing: the API server here takes them.
func (n *ruledNamespace) tellDebug(local *corev1.Pod) {
	if podstate.Ended(local) {
		return
	}
	var names []string
	for _, c := range n.rules.debugged.news(local) {
		names = append(names, c.Name)
	}
	if len(names) > 0 {
		n.events.Eventf(local, corev1.EventTypeWarning, reasonDebugNotRun,
			"The pod runs in another cluster, which lets nobody else change it: %s will not start. Use kubectl exec", strings.Join(names, ", "))
	}
}
