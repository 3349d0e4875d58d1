// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	identitymanager "github.com/liqotech/liqo/pkg/identityManager"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	tenantnamespace "github.com/liqotech/liqo/pkg/tenantNamespace"
	"github.com/liqotech/liqo/pkg/utils"
	"github.com/liqotech/liqo/pkg/utils/restcfg"
	"github.com/liqotech/liqo/pkg/virtualKubelet/leaderelection"
	"github.com/liqotech/liqo/pkg/virtualKubelet/metrics"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// Run is the virtual kubelet of one virtual node. It returns when the context
// ends, without an error, or when one of its parts fails for good.
func Run(ctx context.Context, o *Options, log logr.Logger) error {
	if err := o.Validate(); err != nil {
		return err
	}
	local, err := utils.GetRestConfig(o.HomeKubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server of this cluster: %w", err)
	}
	restcfg.SetRateLimiter(local)
	localClient, err := kubernetes.NewForConfig(local)
	if err != nil {
		return fmt.Errorf("set up the client of this cluster's API: %w", err)
	}
	remote, err := readIdentity(ctx, o, localClient)
	if err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	events := record.NewBroadcaster()
	defer events.Shutdown()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: localClient.CoreV1().Events(corev1.NamespaceAll)})

	translation, err := newTranslation(ctx, o, local, remote, log)
	if err != nil {
		return err
	}
	defer translation.close()
	reflected, err := newReflection(o, local, remote.config, translation.client(), events)
	if err != nil {
		return err
	}
	reflected.start(ctx)
	group.Go(func() error { return translation.run(ctx, reflected.podReflector.Resync) })

	if err := leaderelection.InitAndRun(ctx, leaderelection.Opts{
		Enabled:         o.VirtualKubeletLeaseEnabled,
		PodName:         o.PodName,
		TenantNamespace: o.TenantNamespace,
		LeaseDuration:   o.VirtualKubeletLeaseLeaseDuration,
		RenewDeadline:   o.VirtualKubeletLeaseRenewDeadline,
		RetryPeriod:     o.VirtualKubeletLeaseRetryPeriod,
	}, local, events, func() {
		if err := reflected.manager.Resync(); err != nil {
			log.Error(err, "Cannot reflect all objects again after a change of the leader")
		}
	}); err != nil {
		return fmt.Errorf("set up the election of a leader: %w", err)
	}

	remoteClient, err := kubernetes.NewForConfig(remote.config)
	if err != nil {
		return fmt.Errorf("set up the client of the foreign cluster's API: %w", err)
	}
	server, err := newServer(o, reflected.pods, localClient, remoteClient.RESTClient())
	if err != nil {
		return err
	}
	group.Go(func() error { return server.run(ctx) })
	if o.EnableProfiling {
		group.Go(func() error { return serveProfiles(ctx) })
	}
	if o.EnableMetrics {
		metrics.SetupMetricHandler(o.MetricsAddress)
	}
	if o.CreateNode {
		group.Go(func() error { return runNode(ctx, o, local, remote.config, localClient, log) })
	}
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// identity is how this cluster is known at the foreign one.
type identity struct {
	config *rest.Config
	// tenantNamespace is where the foreign cluster keeps what concerns this one.
	tenantNamespace string
}

// readIdentity reads the identity that the foreign cluster gave to this one.
func readIdentity(ctx context.Context, o *Options, local kubernetes.Interface) (*identity, error) {
	secret, err := local.CoreV1().Secrets(o.TenantNamespace).Get(ctx, o.RemoteKubeconfigSecretName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the identity at cluster %s from Secret %s/%s: %w",
			o.ForeignCluster.ClusterName, o.TenantNamespace, o.RemoteKubeconfigSecretName, err)
	}
	reader := identitymanager.NewCertificateIdentityReader(local, o.HomeCluster, tenantnamespace.NewManager(local))
	config, err := reader.GetConfigFromSecret(secret)
	if err != nil {
		return nil, fmt.Errorf("use the identity at cluster %s from Secret %s/%s: %w",
			o.ForeignCluster.ClusterName, o.TenantNamespace, o.RemoteKubeconfigSecretName, err)
	}
	restcfg.SetRateLimiter(config)
	// Liqo writes the namespace beside the certificate
	// (liqo/pkg/identityManager/const.go@v0.9.4).
	return &identity{config: config, tenantNamespace: string(secret.Data["namespace"])}, nil
}

// translation owns everything that addresses are translated with. Without an
// IPAM in this cluster it does nothing.
type translation struct {
	addresses  *addresses
	connection *grpc.ClientConn
	broker     brokerClient
	tunnels    dynamic.Interface
	log        logr.Logger
	// stale holds a token when translations may have changed.
	stale chan struct{}
}

func newTranslation(ctx context.Context, o *Options, local *rest.Config, remote *identity, log logr.Logger) (*translation, error) {
	t := &translation{log: log.WithName("addresses"), stale: make(chan struct{}, 1)}
	if o.LiqoIpamServer == "" || o.DisableIPReflection {
		return t, nil
	}
	var err error
	if t.tunnels, err = dynamic.NewForConfig(local); err != nil {
		return nil, fmt.Errorf("set up the client of this cluster's API: %w", err)
	}
	t.connection, err = grpc.NewClient(o.LiqoIpamServer, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to the IPAM at --ipam-server=%s: %w", o.LiqoIpamServer, err)
	}
	if t.broker, err = newBrokerClient(o, remote, t.routesChanged, t.log); err != nil {
		return nil, err
	}
	t.addresses = newAddresses(ipam.NewIpamClient(t.connection), foreignID(o), t.broker.relay())
	// Pods must not be reflected before the tunnels are known.
	if err := watchTunnels(ctx, t.tunnels, t.addresses, t.markStale, t.log); err != nil {
		return nil, err
	}
	return t, nil
}

// client returns the IPAM that the reflectors use; nil if there is none.
func (t *translation) client() ipam.IpamClient {
	if t.addresses == nil {
		return nil
	}
	return t.addresses
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

// run stays connected to the broker, and reflects all pods again when
// translations may have changed, until the context ends.
func (t *translation) run(ctx context.Context, resync func() error) error {
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
				if err := resync(); err != nil {
					t.log.Error(err, "Cannot reflect all pods again after a change of addresses")
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
