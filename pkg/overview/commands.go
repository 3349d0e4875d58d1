// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Commands are those by which people look at a line of Liqo, and change what it has.
type Commands struct {
	// Peer says how clusters are peered.
	Peer string
	// Offers lists what clusters offer each other.
	Offers string
	// kubelets lists the virtual kubelets of all peers.
	kubelets string
	// peering is followed by the name of a peer, and says how the peering with it is.
	peering string
}

// CommandsOf returns those of a line.
func CommandsOf(of line.Known) Commands {
	if of.HasPlugin() {
		return Commands{
			Peer: "liqoctl peer out-of-band --help", Offers: "kubectl get resourceoffers -A", peering: "liqoctl status peer",
			kubelets: "kubectl get pods -A -l app.kubernetes.io/component=virtual-kubelet",
		}
	}
	return Commands{
		Peer: "liqoctl peer --help", Offers: "kubectl get resourceslices -A", peering: "liqoctl info peer",
		kubelets: "kubectl get pods -A -l offloading.liqo.io/component=virtual-kubelet",
	}
}

// Peering returns the command that says how the peering with a cluster is.
func (c *Commands) Peering(name string) string {
	return fmt.Sprintf("%s %s", c.peering, Argument(name))
}
