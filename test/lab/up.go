// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/test/lab/build"
	"github.com/capacitorset/liqo-broker/test/lab/image"
	"github.com/capacitorset/liqo-broker/test/lab/kubernetes"
	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
	"github.com/capacitorset/liqo-broker/test/lab/wan"
)

const (
	// clusterPatience is how long a cluster may take until it runs its first pods.
	clusterPatience = 4 * time.Minute
	// peeringPatience is how long one peering may take.
	peeringPatience = 2 * time.Minute
)

// Options say what Up makes.
type Options struct {
	// Dir is the state folder.
	Dir        string
	Topology   topology.Topology
	Kubernetes string
	Artifacts  build.Artifacts
	// Images are archives with images that all clusters get.
	Images []string
	// LiqoSettings are Helm settings ("key=value") by cluster.
	LiqoSettings map[string][]string
	// WithoutLiqo stops when the clusters run.
	WithoutLiqo bool
	// WithoutPeerings leaves the peerings of the topology to somebody else.
	WithoutPeerings bool
	// Progress is told each step that is done. It may be called concurrently.
	Progress func(subject, deed string)
}

// Up makes a lab. What was made stays after an error, to be looked at; Down removes it.
func Up(ctx context.Context, o Options) (*Lab, error) {
	if err := o.Topology.Validate(); err != nil {
		return nil, fmt.Errorf("check the topology: %w", err)
	}
	f, err := newFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	unlock, err := f.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := f.vacant(); err != nil {
		return nil, err
	}
	l := &Lab{folder: f, state: state{Topology: o.Topology, Kubernetes: o.Kubernetes, Artifacts: o.Artifacts}}
	if err := save(f.path("lab.json"), l.state); err != nil {
		return nil, err
	}
	if err := l.loadImages(o.Images); err != nil {
		return nil, err
	}
	if err := l.startWAN(ctx); err != nil {
		return nil, err
	}
	o.Progress("WAN", "is there")
	group, groupCtx := errgroup.WithContext(ctx)
	for _, c := range l.Clusters() {
		group.Go(func() error { return c.up(groupCtx, o) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if o.WithoutLiqo || o.WithoutPeerings {
		return l, nil
	}
	return l, l.PeerAll(ctx, o.Progress)
}

func (l *Lab) loadImages(archives []string) error {
	store := l.folder.path("images")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return fmt.Errorf("make image store: %w", err)
	}
	for _, path := range archives {
		archive, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("load images: %w", err)
		}
		_, err = image.NewStore(store).Load(archive, "")
		archive.Close()
		if err != nil {
			return fmt.Errorf("load images of %s: %w", path, err)
		}
	}
	return nil
}

// remember returns a function that keeps the identity of a node's init in the node's folder.
func remember(dir string) func(process.ID) error {
	return func(id process.ID) error { return save(filepath.Join(dir, "process.json"), id) }
}

// startWAN starts the node whose network namespace has the bridge, and nothing else.
func (l *Lab) startWAN(ctx context.Context) error {
	dir := l.folder.path("wan")
	gateway := netip.PrefixFrom(l.state.Topology.Gateway, l.state.Topology.WAN.Bits())
	configure := func(id process.ID) error { return wan.Of(id).Configure(gateway) }
	return node.Start(ctx, node.Spec{Name: "wan", Dir: dir}, nil, remember(dir), configure)
}

// up starts one cluster and installs Liqo in it.
func (c *Cluster) up(ctx context.Context, o Options) error {
	limited, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	if err := c.start(limited); err != nil {
		return fmt.Errorf("start cluster %s: %w (logs are in %s)", c.Name, err, filepath.Join(c.dir(), "logs"))
	}
	o.Progress(c.Name, "runs Kubernetes "+o.Kubernetes)
	if o.WithoutLiqo {
		return nil
	}
	if err := c.liqo().Install(ctx, o.LiqoSettings[c.Name]...); err != nil {
		return err
	}
	o.Progress(c.Name, "runs Liqo "+c.LiqoVersion())
	return nil
}

func (c *Cluster) start(ctx context.Context) error {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("listen for clients of the API server: %w", err)
	}
	// The node has a copy of the socket; the machine's network namespace owns both.
	defer listener.Close()
	cgroup := filepath.Join(c.lab.folder.cgroup(), c.Name)
	if err := errors.Join(makeCgroups(c.lab.folder.cgroup()), makeCgroups(cgroup), weighCgroups(c.lab.folder.cgroup())); err != nil {
		return err
	}
	stores := []string{filepath.Join(c.dir(), "images"), c.lab.folder.path("images"), c.lab.state.Artifacts.Images}
	k := kubernetes.Cluster{
		Cluster: c.Cluster, WAN: c.lab.state.Topology.WAN, Gateway: c.lab.state.Topology.Gateway, Dir: c.dir(), Cgroup: cgroup,
		Programs: c.lab.state.Artifacts.Kubernetes, Stores: stores, HostPort: listener.Addr().(*net.TCPAddr).Port,
	}
	if err := os.MkdirAll(stores[0], 0o755); err != nil {
		return fmt.Errorf("make image store: %w", err)
	}
	if err := k.WriteFiles(); err != nil {
		return err
	}
	w, err := c.lab.wan()
	if err != nil {
		return err
	}
	connect := func(id process.ID) error { return w.Connect(c.Name, id) }
	if err := node.Start(ctx, k.Spec(), listener, remember(c.dir()), connect); err != nil {
		return err
	}
	return k.WaitReady(ctx, c.kubectl())
}

func makeCgroups(name string) error {
	groups, err := node.FindCgroups(name)
	if err != nil {
		return err
	}
	return groups.Make()
}

// podsWeigh is how many processes beside them all pods of a lab weigh together when processors are busy. The programs of Kubernetes are
// such processes, seven of each cluster: as one of them the pods would get so little that leases are lost.
const podsWeigh = 16

func weighCgroups(name string) error {
	groups, err := node.FindCgroups(name)
	if err != nil {
		return err
	}
	return groups.Weigh(podsWeigh)
}

// PeerAll makes the peerings of the topology: those of one consumer in order,
// those of different consumers at the same time, but for a peering whose reverse
// comes before it: that waits, since both use one tunnel. Those that are there stay.
func (l *Lab) PeerAll(ctx context.Context, progress func(subject, deed string)) error {
	byConsumer := map[string][]topology.Peering{}
	done := map[topology.Peering]chan struct{}{}
	before := map[topology.Peering]<-chan struct{}{}
	for _, p := range l.state.Topology.Peerings {
		byConsumer[p.Consumer] = append(byConsumer[p.Consumer], p)
		done[p] = make(chan struct{})
		before[p] = done[topology.Peering{Consumer: p.Provider, Provider: p.Consumer}]
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, peerings := range byConsumer {
		group.Go(func() error {
			for _, p := range peerings {
				if before[p] != nil {
					select {
					case <-before[p]:
					case <-groupCtx.Done():
						return groupCtx.Err()
					}
				}
				limited, cancel := context.WithTimeout(groupCtx, peeringPatience)
				err := l.Peer(limited, p)
				cancel()
				if err != nil {
					return err
				}
				close(done[p])
				progress(p.Consumer, "peers with "+p.Provider)
			}
			return nil
		})
	}
	return group.Wait()
}
