// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	liqoline "github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/test/lab"
)

// A Cluster is one cluster of the federation.
type Cluster struct {
	client.WithWatch

	Name string
	ID   cluster.ID    // Of Liqo.
	Line liqoline.Line // Which Liqo runs there; nil if none does.
	Lab  *lab.Cluster
}

// open connects to a cluster of a lab, which has Liqo.
func open(ctx context.Context, l *lab.Lab, name string) (*Cluster, error) {
	c, err := connect(l, name)
	if err != nil {
		return nil, err
	}
	var identity corev1.ConfigMap
	key := client.ObjectKey{Namespace: liqoNamespace, Name: "liqo-clusterid-configmap"}
	if err := c.Get(ctx, key, &identity); err != nil {
		return nil, fmt.Errorf("read the Liqo cluster ID of cluster %s: %w", name, err)
	}
	c.ID = cluster.ID(identity.Data["CLUSTER_ID"])
	if c.Line, err = lines.FindMapped(c.RESTMapper()); err != nil {
		return nil, fmt.Errorf("find out which Liqo cluster %s runs: %w", name, err)
	}
	return c, nil
}

// connect connects to a cluster of a lab, and does not know its ID.
func connect(l *lab.Lab, name string) (*Cluster, error) {
	inLab, err := l.Cluster(name)
	if err != nil {
		return nil, err
	}
	config, err := inLab.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{
		Scheme: scheme,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	return &Cluster{WithWatch: c, Name: name, Lab: inLab}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		lines.AddToScheme, vkv1alpha1.AddToScheme, v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// Liqo reads what Liqo has on the cluster. There are no indexes, so that only lists of all objects can be read.
func (c *Cluster) Liqo() liqoline.Reader { return c.Line.Reader(c, c.ID) }

// Peer returns what the cluster's Liqo knows of another one; nil if it does not know it.
//
//nolint:nilnil // That it knows nothing is an answer.
func (c *Cluster) Peer(ctx context.Context, other *Cluster) (*liqo.Peer, error) {
	peers, err := c.Liqo().Peers(ctx)
	if err != nil {
		return nil, err
	}
	for i := range peers {
		if peers[i].ID == other.ID {
			return &peers[i], nil
		}
	}
	return nil, nil
}

// Link returns the cluster's tunnel to another one, once it is known how addresses are seen there; nil if there is none.
//
//nolint:nilnil // That there is none is an answer.
func (c *Cluster) Link(ctx context.Context, other *Cluster) (*liqo.Link, error) {
	links, err := c.Liqo().Links(ctx)
	if err != nil {
		return nil, err
	}
	for i := range links {
		if links[i].Negotiating == nil && links[i].Peer == other.ID {
			return &links[i], nil
		}
	}
	return nil, nil
}

// Tenant returns the namespace in which the cluster keeps what it has to do with a peer.
func (c *Cluster) Tenant(ctx context.Context, peer *Cluster) (string, error) {
	known, err := c.Peer(ctx, peer)
	if err != nil {
		return "", err
	}
	if known == nil {
		return "", fmt.Errorf("%s has no peer %s", c.Name, peer.Name)
	}
	return known.Tenant, nil
}

// ErrNoTwin is why Twin has no name.
var ErrNoTwin = errors.New("there is no twin of this namespace")

// Twin returns the name of the twin that a namespace of another cluster has at the cluster.
func (c *Cluster) Twin(ctx context.Context, of *Cluster, namespace string) (string, error) {
	var all corev1.NamespaceList
	if err := c.List(ctx, &all); err != nil {
		return "", err
	}
	for i := range all.Items {
		twin := &all.Items[i]
		if owner, is := liqo.TwinOf(twin); is && owner == of.ID && liqo.OriginalName(twin) == namespace {
			return twin.Name, nil
		}
	}
	return "", fmt.Errorf("%s of %s at %s: %w", namespace, of.Name, c.Name, ErrNoTwin)
}

// Kubectl runs kubectl of the cluster's version and returns what it prints.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	output, err := c.Lab.Kubectl(ctx, args...)
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	return output, nil
}

// ApplyManifests applies manifests, as kubectl does.
func (c *Cluster) ApplyManifests(ctx context.Context, manifests string) error {
	return withManifests(manifests, func(file string) error {
		_, err := c.Kubectl(ctx, "apply", "--filename="+file)
		return err
	})
}

// deleteManifests deletes what manifests name.
func (c *Cluster) deleteManifests(ctx context.Context, manifests string) error {
	return withManifests(manifests, func(file string) error {
		_, err := c.Kubectl(ctx, "delete", "--ignore-not-found", "--filename="+file)
		return err
	})
}

// withManifests gives a function a file of manifests.
func withManifests(manifests string, do func(file string) error) error {
	file, err := os.CreateTemp("", "*.yaml")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(manifests); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	return do(file.Name())
}

// Curl fetches a URL from the pod `tools` of the cluster, which runs on the cluster itself.
func (c *Cluster) Curl(ctx context.Context, args ...string) (string, error) {
	return c.Kubectl(ctx, append([]string{
		"exec", "--namespace=default", "tools", "--", "curl", "--silent", "--show-error", "--max-time", "10",
	}, args...)...)
}
