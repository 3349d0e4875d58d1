// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab makes real Kubernetes clusters with real Liqo on one machine, with
// neither a container engine nor a virtual machine, and lets tests look into them.
//
// A lab lives in a state folder. Up makes it, Down removes it whatever happened to
// it in between, and Open gives access to it:
//
//	l, err := lab.Open(lab.DefaultDir)
//	consumer, err := l.Cluster("consumer")
//	config, err := consumer.RESTConfig()
//
// Nothing of it is in the machine's own network namespace but one listening socket
// on 127.0.0.1 for each API server, and none of its mounts are visible outside.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capacitorset/liqo-broker/test/lab/image"
	"github.com/capacitorset/liqo-broker/test/lab/kubernetes"
	"github.com/capacitorset/liqo-broker/test/lab/liqo"
	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
	"github.com/capacitorset/liqo-broker/test/lab/wan"
)

// Lab is a lab that exists. Its methods may be called concurrently.
type Lab struct {
	folder folder
	state  state
}

// Open returns the lab in a state folder, or an error that is fs.ErrNotExist.
func Open(dir string) (*Lab, error) {
	f, err := newFolder(dir)
	if err != nil {
		return nil, err
	}
	s, err := f.load()
	if err != nil {
		return nil, err
	}
	return &Lab{folder: f, state: s}, nil
}

func newFolder(dir string) (folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the lab: %w", err)
	}
	return folder(dir), nil
}

// Topology says which clusters the lab has.
func (l *Lab) Topology() topology.Topology { return l.state.Topology }

// LiqoVersion is the version of the Liqo that the clusters have, whether it is installed or not.
func (l *Lab) LiqoVersion() string { return l.state.Artifacts.LiqoVersion }

// Cluster returns the cluster of that name.
func (l *Lab) Cluster(name string) (*Cluster, error) {
	t, err := l.state.Topology.Cluster(name)
	if err != nil {
		return nil, err
	}
	return &Cluster{Cluster: t, lab: l}, nil
}

// Clusters are all clusters, in order.
func (l *Lab) Clusters() []*Cluster {
	var all []*Cluster
	for _, c := range l.state.Topology.Clusters {
		all = append(all, &Cluster{Cluster: c, lab: l})
	}
	return all
}

// Peer makes the consumer use the resources of the provider, and waits for the virtual node.
func (l *Lab) Peer(ctx context.Context, p topology.Peering) error {
	consumer, provider, err := l.pair(p)
	if err != nil {
		return err
	}
	return consumer.liqo().Peer(ctx, provider.liqo())
}

// Unpeer ends a peering.
func (l *Lab) Unpeer(ctx context.Context, p topology.Peering) error {
	consumer, provider, err := l.pair(p)
	if err != nil {
		return err
	}
	if err := consumer.liqo().Unpeer(ctx, provider.liqo()); err != nil {
		return err
	}
	return consumer.letGo(ctx, p.Provider)
}

// letGo waits until Liqo 1.x has let go of the credentials at a provider from which a cluster has unpeered: liqoctl does not, and who peers
// again before has a peering of which nothing is reflected. Liqo's CRD replicator stops reflecting some Renew before its deletion was
// reflected, and then never lets go; one that has just begun does at once (liqo/internal/crdReplicator@v1.2.0).
func (c *Cluster) letGo(ctx context.Context, provider string) error {
	gone := func(within string) error {
		_, err := c.Kubectl(ctx, "wait", "--for=delete", "--timeout="+within, "-n", "liqo-tenant-"+provider,
			"secret/kubeconfig-controlplane-"+provider)
		return err
	}
	if gone("15s") == nil {
		return nil
	}
	if _, err := c.Kubectl(ctx, "rollout", "restart", "-n", "liqo", "deployment/liqo-crd-replicator"); err != nil {
		return err
	}
	return gone("2m")
}

func (l *Lab) pair(p topology.Peering) (consumer, provider *Cluster, err error) {
	consumer, errConsumer := l.Cluster(p.Consumer)
	provider, errProvider := l.Cluster(p.Provider)
	return consumer, provider, errors.Join(errConsumer, errProvider)
}

// SetLink cuts the link between two clusters, or mends it. Their links to the others stay.
func (l *Lab) SetLink(ctx context.Context, a, b string, up bool) error {
	var ends [2]wan.End
	for i, name := range []string{a, b} {
		c, err := l.Cluster(name)
		if err != nil {
			return err
		}
		if ends[i], err = c.end(); err != nil {
			return err
		}
	}
	if a == b {
		return fmt.Errorf("cluster %s has no link to itself", a)
	}
	return wan.SetPair(ctx, ends[0], ends[1], up)
}

func (l *Lab) wan() (wan.WAN, error) {
	holder, err := loadProcess(l.folder.path("wan"))
	if err != nil {
		return wan.WAN{}, err
	}
	return wan.Of(holder), nil
}

// Cluster is a cluster of a lab.
type Cluster struct {
	topology.Cluster
	lab *Lab
}

func (c *Cluster) dir() string { return c.lab.folder.cluster(c.Name) }

// KubeconfigPath is the path of the administrator's kubeconfig, for use on this machine.
func (c *Cluster) KubeconfigPath() string { return filepath.Join(c.dir(), "kubeconfig") }

// KubectlPath is the path of a kubectl that fits the cluster.
func (c *Cluster) KubectlPath() string {
	return filepath.Join(c.lab.state.Artifacts.Kubernetes, "kubectl")
}

// LiqoPath is the folder of what Liqo's release has: liqoctl, and the chart in the folder chart.
func (c *Cluster) LiqoPath() string { return c.lab.state.Artifacts.Liqo }

// LiqoVersion is the version of the Liqo that the lab has, whether it is installed or not.
func (c *Cluster) LiqoVersion() string { return c.lab.LiqoVersion() }

// LiqoInstallArgs returns the arguments with which liqoctl installs Liqo in the cluster, as Up does.
func (c *Cluster) LiqoInstallArgs() ([]string, error) { return c.liqo().InstallArgs() }

// RESTConfig is the administrator's access to the cluster.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigPath())
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig of %s: %w", c.Name, err)
	}
	return config, nil
}

// Kubectl runs kubectl on the cluster and returns what it prints.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectl().Run(ctx, args...)
}

func (c *Cluster) kubectl() kubernetes.Kubectl {
	return kubernetes.Kubectl{Program: c.KubectlPath(), Kubeconfig: c.KubeconfigPath()}
}

func (c *Cluster) liqo() liqo.Liqo {
	return liqo.Liqo{
		Cluster: c.Cluster, WAN: c.lab.state.Topology.WAN.String(), Dir: c.lab.state.Artifacts.Liqo, Version: c.lab.state.Artifacts.LiqoVersion,
		Kubeconfig: c.KubeconfigPath(), Logs: filepath.Join(c.dir(), "logs"),
	}
}

// LogPath is the path of a component's log: init, etcd, kube-apiserver, kubelet and so on, or kubernetes.AuditLog.
func (c *Cluster) LogPath(component string) string {
	return filepath.Join(c.dir(), "logs", component+".log")
}

func (c *Cluster) pid1() (process.ID, error) { return loadProcess(c.dir()) }

// Exec runs a program in the cluster's node, where kubectl is the administrator's. A program that fails gives an *exec.ExitError.
func (c *Cluster) Exec(ctx context.Context, command node.Command) error {
	init, err := c.pid1()
	if err != nil {
		return err
	}
	command.Path = append(command.Path, "/opt/kubernetes")
	command.Env = append(command.Env, "KUBECONFIG=/lab/config/admin.conf")
	return node.Exec(ctx, init, command)
}

// Load adds the images of a docker-archive to the cluster, in place of those of
// the same name, and returns their full names. They get another tag than the
// archive says if one is given.
func (c *Cluster) Load(ctx context.Context, archive io.Reader, tag string) ([]string, error) {
	names, err := image.NewStore(filepath.Join(c.dir(), "images")).Load(archive, tag)
	if err != nil {
		return nil, fmt.Errorf("load images into %s: %w", c.Name, err)
	}
	for _, name := range names {
		pull := node.Command{
			Args:   []string{"ctr", "--namespace", "k8s.io", "images", "pull", "--hosts-dir", kubernetes.RegistriesDir, name},
			Stderr: os.Stderr,
		}
		if err := c.Exec(ctx, pull); err != nil {
			return nil, fmt.Errorf("load image %s into %s: %w", name, c.Name, err)
		}
	}
	return names, nil
}

// end is the cluster's node on the WAN.
func (c *Cluster) end() (wan.End, error) {
	init, err := c.pid1()
	return wan.End{Init: init, Address: c.Address}, err
}

// SetLink cuts the cluster's link to the WAN, or mends it.
func (c *Cluster) SetLink(up bool) error {
	w, err := c.lab.wan()
	if err != nil {
		return err
	}
	return w.SetLink(c.Name, up)
}

// Traffic is the number of bytes that the node received from the WAN and sent to it.
func (c *Cluster) Traffic() (received, sent uint64, err error) {
	init, err := c.pid1()
	if err != nil {
		return 0, 0, err
	}
	err = node.InNetwork(init, func() error {
		link, err := netlink.LinkByName(node.Interface)
		if err != nil {
			return fmt.Errorf("find %s of %s: %w", node.Interface, c.Name, err)
		}
		received, sent = link.Attrs().Statistics.RxBytes, link.Attrs().Statistics.TxBytes
		return nil
	})
	return received, sent, err
}
