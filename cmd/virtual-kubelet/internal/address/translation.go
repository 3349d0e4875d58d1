// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// Translation owns everything that addresses are translated with. Without an
// IPAM in this cluster it does nothing. It may be used concurrently.
type Translation struct {
	addresses  *Addresses
	connection *grpc.ClientConn
	broker     brokerClient
	log        logr.Logger
	// stale is set when translations may have changed.
	stale wake.Signal
}

// Config is what must be known to translate addresses.
type Config struct {
	// IPAM is where that of this cluster serves, HOST:PORT; empty if there is none.
	IPAM string
	// Foreign is the foreign cluster, and ForeignName what people call it.
	Foreign     cluster.ID
	ForeignName string
	// TenantNamespace is where this cluster keeps what concerns the foreign one.
	TenantNamespace string
	// CheckTunnel is whether the tunnel to the foreign cluster matters; without it, Liqo is told
	// to leave networks alone.
	CheckTunnel bool
	// RemoteIPAM tells where brokers serve a remote IPAM; without any, none is used.
	RemoteIPAM remoteipam.Servers
	// Identity is how this cluster is known at the foreign one, and RemoteNamespace where the
	// foreign one keeps what concerns this one.
	Identity        *rest.Config
	RemoteNamespace string
}

// NewTranslation returns when all is known that addresses are translated with at first; it is
// followed until the context ends, by way of the API server of this cluster: local, and client.
func NewTranslation(
	ctx context.Context, c *Config, local *rest.Config, client kubernetes.Interface, log logr.Logger,
) (*Translation, error) {
	t := &Translation{log: log.WithName("addresses"), stale: wake.New()}
	if c.IPAM == "" {
		return t, nil
	}
	tunnels, err := dynamic.NewForConfig(local)
	if err != nil {
		return nil, fmt.Errorf("set up the client of this cluster's API: %w", err)
	}
	t.connection, err = grpc.NewClient(c.IPAM, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to the IPAM at --ipam-server=%s: %w", c.IPAM, err)
	}
	// The client answers only once it runs, which is after the addresses are there.
	relayed := func(address netip.Addr) bool { return t.addresses.relayed(address) }
	if t.broker, err = newBrokerClient(c, t.routesChanged, relayed, t.log); err != nil {
		return nil, err
	}
	t.addresses = New(ipam.NewIpamClient(t.connection), c.Foreign, t.broker.relay())
	t.addresses.checkTunnel = c.CheckTunnel
	// Nothing must be reflected before these are known.
	if err := watchTunnels(ctx, tunnels, t.addresses, t.markStale, t.log); err != nil {
		return nil, err
	}
	if err := watchDirect(ctx, client, c.TenantNamespace, t.addresses, t.markStale, t.log); err != nil {
		return nil, err
	}
	return t, nil
}

// Addresses returns what translates addresses in other clusters; nil if there is none.
func (t *Translation) Addresses() *Addresses { return t.addresses }

// Source returns what tells for whom callers count.
func (t *Translation) Source() source.Func {
	if t.addresses == nil {
		return source.Network
	}
	return t.addresses.source
}

// Client returns the IPAM that the reflectors use; nil if there is none.
func (t *Translation) Client() ipam.IpamClient {
	if t.addresses == nil {
		return nil
	}
	return t.addresses
}

// ReachedDirectly reports whether a pod that the foreign cluster reports at an
// address is reached past it.
func (t *Translation) ReachedDirectly(address string) bool {
	return t.addresses != nil && t.addresses.reachedDirectly(address)
}

// Hold notes the address of a pod of the foreign cluster; an empty one is none.
func (t *Translation) Hold(pod, address string) {
	if t.addresses != nil {
		t.addresses.Hold(pod, address)
	}
}

// Release notes that a pod of the foreign cluster is gone.
func (t *Translation) Release(pod string) {
	if t.addresses != nil {
		t.addresses.Release(pod)
	}
}

func (t *Translation) routesChanged() {
	t.addresses.routesChanged()
	t.markStale()
}

func (t *Translation) markStale() { t.stale.Set() }

// Run stays connected to the broker, and calls translateAgain when translations
// may have changed, until the context ends.
func (t *Translation) Run(ctx context.Context, translateAgain func() error) error {
	if t.addresses == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		t.broker.run(ctx)
		return nil
	})
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-t.stale.Taken():
				if err := translateAgain(); err != nil {
					t.log.Error(err, "Cannot reflect all pods and endpoints again after a change of addresses")
				}
			}
		}
	})
	return group.Wait()
}

// Close closes the connection to the IPAM; nothing may translate any more.
func (t *Translation) Close() {
	if t.connection == nil {
		return
	}
	if err := t.connection.Close(); err != nil {
		t.log.Error(err, "Cannot close the connection to the IPAM")
	}
}
