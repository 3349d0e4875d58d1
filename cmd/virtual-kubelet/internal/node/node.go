// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node keeps the virtual node that stands for a foreign cluster, and elects which of the
// virtual kubelets of one node acts. It does not know of the pods of the node but whether there
// are any, and how they are reached.
package node

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	foreigncluster "github.com/liqotech/liqo/pkg/utils/foreignCluster"
	nodeprovider "github.com/liqotech/liqo/pkg/virtualKubelet/liqoNodeProvider"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Node is the node that stands for the foreign cluster. It may be used concurrently.
type Node struct {
	config *Config
	liqo   *nodeprovider.LiqoNodeProvider
	steady *steadyNode
	// answers reports whether Liqo reaches the foreign cluster.
	answers func(context.Context) (bool, error)
	nodes   typedcorev1.NodeInterface
	// pods are those of the tenant namespace.
	pods   typedcorev1.PodInterface
	leases coordinationv1.LeaseInterface
	log    logr.Logger
}

// Config is what must be known of a virtual node.
type Config struct {
	// Name is that of the node, and IP its address, where the kubelet API is at Port.
	Name, IP string
	Port     uint16
	// HomeCluster and ForeignCluster are the IDs of this cluster and of the one that the node
	// stands for.
	HomeCluster, ForeignCluster string
	// TenantNamespace is where this cluster keeps what concerns the foreign one.
	TenantNamespace string
	// Pod is the name of the pod of this virtual kubelet, in TenantNamespace; empty if it is in none.
	Pod string
	// Version is that of Kubernetes.
	Version string
	// Labels and Annotations are those that the node has besides Liqo's; nil is none.
	Labels, Annotations map[string]string
	// Local and Foreign are how the two API servers are reached.
	Local, Foreign *rest.Config
	// Resync is how often Liqo looks at all that it follows; zero is never.
	Resync time.Duration
	// CheckNetwork is whether the node follows the state of the tunnel.
	CheckNetwork bool
	// LeaseDuration is how long a lease of the node lasts, and for how long the foreign cluster
	// may be silent; zero is as long as by default.
	LeaseDuration time.Duration
	// PingInterval is how often it is asked whether the foreign cluster answers, in at most
	// PingTimeout; zero is never.
	PingInterval, PingTimeout time.Duration
}

// New returns a node that nobody sees until it runs; client is one of this cluster.
func New(config *Config, client kubernetes.Interface, pods Pods, log logr.Logger) (*Node, error) {
	foreign, err := dynamic.NewForConfig(config.Local)
	if err != nil {
		return nil, fmt.Errorf("set up the client of this cluster's API: %w", err)
	}
	provider := nodeprovider.NewLiqoNodeProvider(&nodeprovider.InitConfig{
		HomeConfig:           config.Local,
		RemoteConfig:         config.Foreign,
		HomeClusterID:        config.HomeCluster,
		RemoteClusterID:      config.ForeignCluster,
		Namespace:            config.TenantNamespace,
		NodeName:             config.Name,
		InternalIP:           config.IP,
		DaemonPort:           config.Port,
		Version:              config.Version,
		ExtraLabels:          config.Labels,
		ExtraAnnotations:     config.Annotations,
		InformerResyncPeriod: config.Resync,
		PingDisabled:         true, // What it would ask, steadyNode does.
		CheckNetworkStatus:   config.CheckNetwork,
	})
	return &Node{
		config: config,
		liqo:   provider,
		steady: newSteadyNode(provider, provider.GetNode().DeepCopy().Status, pods,
			cmp.Or(config.LeaseDuration, node.DefaultLeaseDuration*time.Second), log),
		answers: foreignAnswers(foreign, config.ForeignCluster),
		nodes:   client.CoreV1().Nodes(),
		pods:    client.CoreV1().Pods(config.TenantNamespace),
		leases:  client.CoordinationV1().Leases(corev1.NamespaceNodeLease),
		log:     log,
	}, nil
}

// foreignAnswers returns what asks this cluster whether its Liqo reaches the API server
// of a foreign one.
func foreignAnswers(client dynamic.Interface, id string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		found, err := foreigncluster.GetForeignClusterByIDWithDynamicClient(ctx, client, id)
		if err != nil {
			return false, fmt.Errorf("read the ForeignCluster of %s: %w", id, err)
		}
		return foreigncluster.IsAPIServerReady(found), nil
	}
}

// Reconsider shows the node again: something has changed that its state follows from. It does
// not block.
func (v *Node) Reconsider() { v.steady.reconsider() }

// Run shows and keeps the node until the context ends, then without an error. It may be called
// once.
func (v *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	if v.config.PingInterval > 0 {
		asking.Go(func() { v.steady.ask(ctx, v.config.PingInterval, v.config.PingTimeout, v.answers) })
	}
	asking.Go(func() { v.sign(ctx) })
	// Before the provider's informers run, nobody else holds its node.
	ready := v.liqo.StartProvider(ctx)
	registered := sync.OnceFunc(func() {
		close(ready)
		// It may wait for a controller that has ended with the context, and then ends with
		// the process.
		go v.steady.keepNode(ctx)
	})
	return Patiently(ctx, v.log, func() error {
		controller, err := v.newController(ctx)
		if err != nil {
			return err
		}
		return runController(ctx, controller, registered)
	})
}

// newController returns what shows the node to Kubernetes. A node that is there stays as it
// is until more is known: it would be without resources, and neither ready nor not, and
// Kubernetes calls its pods not ready then.
func (v *Node) newController(ctx context.Context) (*node.NodeController, error) {
	first := v.liqo.GetNode().DeepCopy()
	existing, err := v.nodes.Get(ctx, first.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		v.steady.begin(existing)
		first.Status.Conditions, first.Status.Images = existing.Status.Conditions, existing.Status.Images
		first.Status.Capacity, first.Status.Allocatable = existing.Status.Capacity, existing.Status.Allocatable
		first = v.steady.completed(first)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read virtual node %s: %w", v.config.Name, err)
	}
	controller, err := node.NewNodeController(v.steady, first, v.nodes,
		node.WithNodeEnableLeaseV1(v.leases, int32(v.config.LeaseDuration.Seconds())),
		node.WithNodeStatusUpdateErrorHandler(v.restore))
	if err != nil {
		return nil, fmt.Errorf("set up virtual node %s: %w", v.config.Name, err)
	}
	return controller, nil
}

// runController shows the node until the context ends, or fails to register it; it calls
// registered when that is done.
func runController(ctx context.Context, controller *node.NodeController, registered func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		select {
		case <-controller.Ready():
			registered()
		case <-ctx.Done():
		}
	})
	return controller.Run(ctx)
}

// restore creates the node again if it is gone, and otherwise writes its status.
func (v *Node) restore(ctx context.Context, _ error) error {
	if v.liqo.IsTerminating() {
		return nil
	}
	wanted := v.steady.completed(v.liqo.GetNode())
	wanted.ResourceVersion = ""
	existing, err := v.nodes.Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		v.log.Info("Creating the virtual node", "virtualNode", wanted.Name)
		_, err = v.nodes.Create(ctx, wanted, metav1.CreateOptions{})
	case err == nil:
		_, now := v.steady.current()
		if now == nil {
			return nil // It stays as it is while Liqo finds out.
		}
		existing.Status = now.Status
		_, err = v.nodes.UpdateStatus(ctx, existing, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("restore virtual node %s: %w", wanted.Name, err)
	}
	return nil
}
