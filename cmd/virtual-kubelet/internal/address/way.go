// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Way is how this cluster reaches a pod that a broker runs on a provider. The zero value is that of
// a pod which is on no provider of a broker.
type Way struct {
	// Path is [addressing.PathDirect] or [addressing.PathRelay]; [addressing.PathUnknown] in the zero value.
	Path addressing.Path
	// Provider runs the pod; empty if the broker told nobody.
	Provider cluster.ID
	// Name is what the provider calls itself, for people; empty if the broker did not say it.
	Name string
}

// Same reports whether another way is the same, whatever the provider calls itself.
func (w Way) Same(other Way) bool { return w.Path == other.Path && w.Provider == other.Provider }

// String returns the way as shown to people.
func (w Way) String() string {
	if w.Provider == "" {
		return w.Path.String()
	}
	return w.Path.String() + " (provider " + string(w.Provider) + ")"
}

// WayTo returns the way to a pod that is shown here at one address, and that the foreign cluster reports
// at another. It is false if nobody can tell at the moment: before the broker has told its routes, or while the
// address that is shown is still that of before.
func (a *Addresses) WayTo(shown, reported string) (Way, bool) {
	if a.relay == nil {
		return Way{}, true
	}
	here, err := netip.ParseAddr(shown)
	there, errThere := netip.ParseAddr(reported)
	table := a.table.Load()
	if err != nil || errThere != nil || table == nil {
		return Way{}, false
	}
	path, address := table.Resolve(there)
	provider := table.Provider(there)
	switch {
	case path == addressing.PathBroker:
		return Way{}, here == address
	case a.relay.Routes() == nil:
		return Way{}, false
	case path == addressing.PathDirect && here == address:
		return Way{Path: addressing.PathDirect, Provider: provider.ID, Name: provider.Name}, true
	case a.Owns(a.foreign, here):
		return Way{Path: addressing.PathRelay, Provider: provider.ID, Name: provider.Name}, true
	}
	return Way{}, false
}
