// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/exposition"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// translation owns everything that addresses are translated with. Without an
// IPAM in this cluster it does nothing.
type translation struct {
	addresses  *addresses
	connection *grpc.ClientConn
	broker     brokerClient
	log        logr.Logger
	// stale holds a token when translations may have changed.
	stale chan struct{}
}

func newTranslation(ctx context.Context, o *Options, local *rest.Config, client kubernetes.Interface, remote *identity, log logr.Logger) (*translation, error) {
	t := &translation{log: log.WithName("addresses"), stale: make(chan struct{}, 1)}
	if o.LiqoIpamServer == "" || o.DisableIPReflection {
		return t, nil
	}
	tunnels, err := dynamic.NewForConfig(local)
	if err != nil {
		return nil, fmt.Errorf("set up the client of this cluster's API: %w", err)
	}
	t.connection, err = grpc.NewClient(o.LiqoIpamServer, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to the IPAM at --ipam-server=%s: %w", o.LiqoIpamServer, err)
	}
	// The client answers only once it runs, which is after the addresses are there.
	relayed := func(address netip.Addr) bool { return t.addresses.relayed(address) }
	if t.broker, err = newBrokerClient(o, remote, t.routesChanged, relayed, t.log); err != nil {
		return nil, err
	}
	t.addresses = newAddresses(ipam.NewIpamClient(t.connection), foreignID(o), t.broker.relay())
	t.addresses.checkTunnel = o.NodeCheckNetwork
	// Nothing must be reflected before these are known.
	if err := watchTunnels(ctx, tunnels, t.addresses, t.markStale, t.log); err != nil {
		return nil, err
	}
	if err := watchDirect(ctx, client, o.TenantNamespace, t.addresses, t.markStale, t.log); err != nil {
		return nil, err
	}
	return t, nil
}

// mapper returns what translates addresses in other clusters; nil if there is none.
func (t *translation) mapper() endpointMapper {
	if t.addresses == nil {
		return nil
	}
	return t.addresses
}

// source returns what tells for whom callers count.
func (t *translation) source() source.Func {
	if t.addresses == nil {
		return source.Network
	}
	return t.addresses.source
}

// client returns the IPAM that the reflectors use; nil if there is none.
func (t *translation) client() ipam.IpamClient {
	if t.addresses == nil {
		return nil
	}
	return t.addresses
}

// endpoints returns a reflector of EndpointSlices that passes on what may be translated.
func (t *translation) endpoints(config *generic.ReflectorConfig, budget *endpointBudget, refused prometheus.Counter) manager.Reflector {
	if t.addresses == nil {
		return exposition.NewEndpointSliceReflector(nil, config)
	}
	transit := &transitEndpoints{owns: t.addresses.owns, place: t.addresses.place, budget: budget, refused: refused, log: t.log}
	transit.reflect(t.addresses, config)
	return transit
}

// reachedDirectly reports whether a pod that the foreign cluster reports at an
// address is reached past it.
func (t *translation) reachedDirectly(address string) bool {
	return t.addresses != nil && t.addresses.reachedDirectly(address)
}

// hold notes the address of a pod of the foreign cluster; an empty one is none.
func (t *translation) hold(pod, address string) {
	if t.addresses != nil {
		t.addresses.hold(pod, address)
	}
}

// release notes that a pod of the foreign cluster is gone.
func (t *translation) release(pod string) {
	if t.addresses != nil {
		t.addresses.release(pod)
	}
}

func (t *translation) routesChanged() {
	t.addresses.routesChanged()
	t.markStale()
}

func (t *translation) markStale() {
	select {
	case t.stale <- struct{}{}:
	default:
	}
}

// run stays connected to the broker, and calls translateAgain when translations
// may have changed, until the context ends.
func (t *translation) run(ctx context.Context, translateAgain func() error) error {
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
			case <-t.stale:
				if err := translateAgain(); err != nil {
					t.log.Error(err, "Cannot reflect all pods and endpoints again after a change of addresses")
				}
			}
		}
	})
	return group.Wait()
}

func (t *translation) close() {
	if t.connection == nil {
		return
	}
	if err := t.connection.Close(); err != nil {
		t.log.Error(err, "Cannot close the connection to the IPAM")
	}
}
