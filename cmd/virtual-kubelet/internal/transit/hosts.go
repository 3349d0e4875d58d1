// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
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

// mapHosts makes the hosts that a spec names lead there from the foreign cluster. Liqo
// leaves the spec of a pod as it was created, and so are these.
func (n *transitNamespace) mapHosts(origin cluster.ID, local *corev1.Pod, spec *corev1.PodSpec) error {
	if n.mapper == nil {
		return nil
	}
	var failed error
	var unknown []string
	eachHost(spec, func(host *string) {
		here, err := netip.ParseAddr(*host)
		if err != nil {
			return // A name means in each cluster what that cluster's DNS says.
		}
		// An IPv4 address that is written as IPv6 is dialed as what it is.
		here = here.Unmap()
		there, err := n.mapper.MapHost(origin, here)
		switch {
		case errors.Is(err, address.ErrHostUnknown):
			unknown = append(unknown, *host)
			there = nobody
			if here.Is6() {
				there = nobody6
			}
		case err != nil:
			failed = err
			return
		}
		if there != here {
			*host = there.String()
		}
	})
	if failed != nil {
		return fmt.Errorf("translate the hosts that pod %s/%s names: %w", local.Namespace, local.Name, failed)
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		unknown = slices.Compact(unknown)
		n.events.Eventf(local, corev1.EventTypeWarning, reasonHostUnknown,
			"The pod cannot reach what its hooks, probes, host aliases or name servers lead to: %s",
			strings.Join(unknown[:min(maxNamed, len(unknown))], ", "))
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
