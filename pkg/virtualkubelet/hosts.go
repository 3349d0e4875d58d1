// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// reasonHostUnknown is the reason of the event on a pod that names a host which its
// cluster cannot be told how to reach.
const reasonHostUnknown = "HostNotReachable"

// maxNamed is how many addresses such an event names.
const maxNamed = 3

// Nobody is at these addresses (RFC 5737, RFC 6666). In the foreign cluster, an address
// that means something here may be that of anybody.
var (
	nobody  = netip.MustParseAddr("192.0.2.1")
	nobody6 = netip.MustParseAddr("100::1")
)

// errHostUnknown says that the foreign cluster cannot be told how to reach an address.
var errHostUnknown = errors.New("the foreign cluster cannot be told how to reach it")

// hostMapper translates the addresses that a pod names in its spec.
type hostMapper interface {
	// mapHost returns under which address the foreign cluster reaches what this one reaches
	// at an address: the same if that is not one of Liqo's. The origin is where the pod
	// comes from that names it; empty for a pod of this cluster. An error is errHostUnknown,
	// or passes by itself.
	mapHost(origin cluster.ID, address netip.Addr) (netip.Addr, error)
}

// mapHosts makes the hosts that a spec names lead there from the foreign cluster. Liqo
// leaves the spec of a pod as it was created, and so are these.
func (n *transitNamespace) mapHosts(origin cluster.ID, local *corev1.Pod, spec *corev1.PodSpec) error {
	if n.mapper == nil {
		return nil
	}
	var failed error
	var unknown []string
	eachHost(spec, func(host *string) {
		address, err := netip.ParseAddr(*host)
		if err != nil {
			return // A name means in each cluster what that cluster's DNS says.
		}
		// An IPv4 address that is written as IPv6 is dialed as what it is.
		address = address.Unmap()
		there, err := n.mapper.mapHost(origin, address)
		switch {
		case errors.Is(err, errHostUnknown):
			unknown = append(unknown, *host)
			there = nobody
			if address.Is6() {
				there = nobody6
			}
		case err != nil:
			failed = err
			return
		}
		if there != address {
			*host = there.String()
		}
	})
	if failed != nil {
		return fmt.Errorf("translate the hosts that pod %s/%s names: %w", local.Namespace, local.Name, failed)
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		unknown = slices.Compact(unknown)
		n.events.Eventf(local, corev1.EventTypeWarning, reasonHostUnknown,
			"The pod cannot reach what its hooks, probes, host aliases or name servers lead to: %s", strings.Join(unknown[:min(maxNamed, len(unknown))], ", "))
	}
	return nil
}

// eachHost visits all in a spec that names a host, but for the aliases of an API server,
// which are translated where they are made.
func eachHost(spec *corev1.PodSpec, visit func(host *string)) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, handler := range handlersOf(&containers[i]) {
				if handler.HTTPGet != nil {
					visit(&handler.HTTPGet.Host)
				}
				if handler.TCPSocket != nil {
					visit(&handler.TCPSocket.Host)
				}
			}
		}
	}
	for i := range spec.HostAliases {
		if alias := &spec.HostAliases[i]; !slices.Contains(alias.Hostnames, apiServerName) {
			visit(&alias.IP)
		}
	}
	if spec.DNSConfig != nil {
		for i := range spec.DNSConfig.Nameservers {
			visit(&spec.DNSConfig.Nameservers[i])
		}
	}
}

// handlersOf returns the hooks and probes of a container.
func handlersOf(container *corev1.Container) []corev1.ProbeHandler {
	var handlers []corev1.ProbeHandler
	if lifecycle := container.Lifecycle; lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{lifecycle.PostStart, lifecycle.PreStop} {
			if hook != nil {
				handlers = append(handlers, corev1.ProbeHandler{HTTPGet: hook.HTTPGet, TCPSocket: hook.TCPSocket})
			}
		}
	}
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if probe != nil {
			handlers = append(handlers, probe.ProbeHandler)
		}
	}
	return handlers
}

// mapHost implements hostMapper by arithmetic alone: a mapping in the IPAM would be
// nobody's to free. So it opens nothing to the foreign cluster that was closed before.
func (a *addresses) mapHost(origin cluster.ID, here netip.Addr) (netip.Addr, error) {
	a.mu.Lock()
	foreign, known := a.peers[a.foreign]
	consumers, ofPeers := a.consumersAt(origin, here), a.isLiqos(here)
	a.mu.Unlock()
	switch {
	case !known && a.checkTunnel:
		return netip.Addr{}, fmt.Errorf("the prefixes of the tunnel to cluster %s are not known", a.foreign)
	case !known:
		return here, nil // The network between the two is not Liqo's.
	}
	if there, err := foreign.Home.ToObserver(here); err == nil {
		return there, nil // A pod of this cluster.
	}
	if table := a.table.Load(); table != nil {
		if there, ok := table.Reported(here); ok {
			return there, nil // A pod of the foreign cluster, or one that is reached past it.
		}
	}
	if a.relay != nil {
		if there, ok := a.relay.Reported(here); ok {
			return there, nil // A pod to which the foreign cluster leads.
		}
	}
	if detours := a.detours.Load(); detours != nil && consumers {
		for _, detour := range *detours {
			if there, err := detour.ToObserver(here); err == nil {
				return there, nil // A pod of a consumer that the foreign cluster reaches itself.
			}
		}
	}
	if ofPeers {
		return netip.Addr{}, errHostUnknown
	}
	return here, nil
}

// consumersAt reports whether a pod from an origin may name a pod of a consumer at an
// address: one of this cluster may, and another only its own consumer's. It is called with
// the lock held.
func (a *addresses) consumersAt(origin cluster.ID, here netip.Addr) bool {
	own := a.peers[origin].Pods.Seen
	return origin == "" || own.IsValid() && own.Contains(here)
}

// isLiqos reports whether an address is one that only this cluster's Liqo gives a meaning
// to: of a pod of this cluster or of a peer, or of an external CIDR. It is called with the
// lock held.
func (a *addresses) isLiqos(here netip.Addr) bool {
	contains := func(view addressing.View, prefix netip.Prefix) bool { return view.IsValid() && prefix.Contains(here) }
	for _, peer := range a.peers {
		if contains(peer.Pods, peer.Pods.Seen) || contains(peer.External, peer.External.Seen) ||
			contains(peer.Home, peer.Home.Own) || contains(peer.HomeExternal, peer.HomeExternal.Own) {
			return true
		}
	}
	return false
}
