// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	identitymanager "github.com/liqotech/liqo/pkg/identityManager"
	tenantnamespace "github.com/liqotech/liqo/pkg/tenantNamespace"
	"github.com/liqotech/liqo/pkg/utils"
	"github.com/liqotech/liqo/pkg/utils/restcfg"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/leaderelection"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/events"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/node"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/serve"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/transit"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Run is the virtual kubelet of one virtual node. It returns when the context
// ends, without an error, or when one of its parts fails for good.
func Run(ctx context.Context, o *Options, log logr.Logger) error {
	if err := o.Validate(); err != nil {
		return err
	}
	// This cluster's API, with Liqo's limits: those of client-go are for programs that ask for little.
	local, err := utils.GetRestConfig(o.HomeKubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server of this cluster: %w", err)
	}
	restcfg.SetRateLimiter(local)
	timeRequests(local)
	localClient, err := kubernetes.NewForConfig(compact(local))
	if err != nil {
		return fmt.Errorf("set up the client of this cluster's API: %w", err)
	}

	// Of several virtual kubelets for one node, one acts: wait until it is this one.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	if o.VirtualKubeletLeaseEnabled {
		this, err := node.NewReplica(node.ReplicaConfig{Namespace: o.TenantNamespace, Node: o.NodeName, Pod: o.PodName}, localClient,
			log.WithName("replica"))
		if err != nil {
			return err
		}
		group.Go(func() error { return this.Run(ctx) })
		select {
		case <-this.Leads():
		case <-ctx.Done():
			return group.Wait()
		}
	}
	// Ask who this is and what there is. A replica may have waited for weeks: all that follows is as it is now.
	first, err := askCluster(ctx, o, localClient, log)
	if err != nil {
		return err
	}
	remote := first.identity
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	events.Record(broadcaster, localClient, transit.ToldReasons()...)

	// Reflect objects, and keep the node.
	translation, err := address.NewTranslation(ctx, translationConfig(o, remote), local, localClient, log)
	if err != nil {
		return err
	}
	defer translation.Close()
	metrics := serve.NewMetrics()
	reflected, err := newReflection(o, first, local, translation, broadcaster, metrics, log)
	if err != nil {
		return err
	}
	reflected.start(ctx)
	virtual, err := node.New(&node.Config{
		Name: o.NodeName, IP: o.NodeIP, Port: o.ListenPort,
		HomeCluster: o.HomeCluster.ClusterID, ForeignCluster: o.ForeignCluster.ClusterID, TenantNamespace: o.TenantNamespace, Pod: o.PodName,
		Version: first.version, Labels: o.NodeExtraLabels.StringMap, Annotations: o.NodeExtraAnnotations.StringMap,
		Local: local, Foreign: remote.config, Resync: o.InformerResyncPeriod, CheckNetwork: o.NodeCheckNetwork,
		LeaseDuration: o.NodeLeaseDuration, PingInterval: o.NodePingInterval, PingTimeout: o.NodePingTimeout,
	}, localClient, reflected.answering, log.WithName("node"))
	if err != nil {
		return err
	}
	group.Go(func() error {
		return translation.Run(ctx, func() error {
			virtual.Reconsider()
			return reflected.translateAgain()
		})
	})

	// Liqo elects who writes what all virtual kubelets for the foreign cluster share.
	if err := leaderelection.InitAndRun(ctx, leaderelection.Opts{
		Enabled:         o.VirtualKubeletLeaseEnabled,
		PodName:         o.PodName,
		TenantNamespace: o.TenantNamespace,
		LeaseDuration:   o.VirtualKubeletLeaseLeaseDuration,
		RenewDeadline:   o.VirtualKubeletLeaseRenewDeadline,
		RetryPeriod:     o.VirtualKubeletLeaseRetryPeriod,
	}, local, broadcaster, func() {
		if err := reflected.manager.Resync(); err != nil {
			log.Error(err, "Cannot reflect all objects again after a change of the leader")
		}
	}); err != nil {
		return fmt.Errorf("set up the election of a leader: %w", err)
	}

	// Serve logs, exec and the like to those who may use them.
	remoteClient, err := kubernetes.NewForConfig(remote.config)
	if err != nil {
		return fmt.Errorf("set up the client of the foreign cluster's API: %w", err)
	}
	reviewer, as, err := serve.Reviewers(local)
	if err != nil {
		return err
	}
	// The API server says of each caller who it is, and what it may.
	admission, err := serve.NewAdmission(serve.AdmissionConfig{NodeName: o.NodeName, ClientCA: o.ClientCA, RolePatch: rolePatch}, reviewer, as,
		translation.Source(), log.WithName("admission"))
	if err != nil {
		return err
	}
	server, err := serve.NewServer(&serve.Config{
		NodeName: o.NodeName, NodeIP: o.NodeIP, Port: o.ListenPort, CertificateType: o.CertificateType.Value,
		HomeCluster: o.HomeCluster.ClusterID,
	}, reflected.pods, localClient, remoteClient.RESTClient(), admission)
	if err != nil {
		return err
	}
	group.Go(func() error { return server.Run(ctx) })
	if o.EnableProfiling {
		group.Go(func() error { return serve.HTTP(ctx, "profiles", serve.ProfileAddress, serve.Profiles()) })
	}
	if o.EnableMetrics {
		group.Go(func() error {
			if !o.MetricsAuthentication {
				return serve.HTTP(ctx, "metrics", o.MetricsAddress, metrics.Handler())
			}
			return server.RunMetrics(ctx, o.MetricsAddress, metrics.Handler())
		})
	}
	if o.CreateNode {
		group.Go(func() error { return virtual.Run(ctx) })
	}
	// Wait for the end of all parts; the first that fails ends the others.
	err = group.Wait()
	reflected.join()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// translationConfig returns what addresses are translated with.
func translationConfig(o *Options, remote *identity) *address.Config {
	c := &address.Config{
		IPAM: o.LiqoIpamServer, Foreign: cluster.ID(o.ForeignCluster.ClusterID), ForeignName: o.ForeignCluster.ClusterName,
		TenantNamespace: o.TenantNamespace, CheckTunnel: o.NodeCheckNetwork, RemoteIPAM: o.RemoteIPAM,
		Identity: remote.config, RemoteNamespace: remote.tenantNamespace,
	}
	if o.DisableIPReflection {
		c.IPAM = ""
	}
	return c
}

// answerTimeout bounds one attempt to ask this cluster for what must be known at first.
const answerTimeout = 30 * time.Second

// given is what a virtual kubelet asks its cluster before it begins.
type given struct {
	identity *identity
	// version is that of Kubernetes.
	version string
	// apiServer is how offloaded pods authenticate at this cluster's API server.
	apiServer forge.APIServerSupportType
}

// askCluster asks this cluster for what must be known at first, until it answers.
func askCluster(ctx context.Context, o *Options, client kubernetes.Interface, log logr.Logger) (*given, error) {
	var g given
	err := node.Patiently(ctx, log, func() error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		var err error
		if g.identity, err = readIdentity(ctx, o, client); err != nil {
			return err
		}
		info, err := client.Discovery().ServerVersion()
		if err != nil {
			return fmt.Errorf("ask this cluster for its version: %w", err)
		}
		g.version = info.GitVersion
		g.apiServer, err = apiServerSupport(o, client)
		return err
	})
	return &g, err
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
	timeRequests(config)
	bound(config, maxAnswer)
	// Liqo writes the namespace beside the certificate
	// (liqo/pkg/identityManager/const.go@v0.9.4).
	return &identity{config: config, tenantNamespace: string(secret.Data["namespace"])}, nil
}
