// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	liqoline "github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

//go:embed manifests
var manifests embed.FS

// What the demo runs on the federation.
const (
	DemoNamespace = "demo"
	DemoReplicas  = 6
)

// Workloads that Deploy knows.
const (
	Web   = "web"   // The lab's web server, which answers with its host name, and a Service.
	Shell = "shell" // A shell that prints lines.

	// Home is web servers on the consumer itself, with a Service and a headless one, and a shell on a provider.
	Home = "home"
	// Neighbours is web servers on all providers, with a Service and a headless one, and a shell beside them.
	Neighbours = "neighbours"
)

// Deploy makes a namespace of the consumer whose pods go to the broker, unless they must run on the consumer itself, and a
// workload in it, and waits until its pods run.
func (f *Federation) Deploy(ctx context.Context, namespace, workload string, replicas int) error {
	if err := f.offloadNamespace(ctx, namespace, workload == Home); err != nil {
		return err
	}
	if err := f.run(ctx, workload, namespace, replicas); err != nil {
		return err
	}
	var deployments appsv1.DeploymentList
	if err := f.Consumer.List(ctx, &deployments, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range deployments.Items {
		if err := f.Consumer.rollout(ctx, namespace, deployments.Items[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// DeployTo makes a namespace of the consumer whose pods go to a cluster, or stay at home if that is nil, and web servers in it.
func (f *Federation) DeployTo(ctx context.Context, namespace string, to *Cluster, replicas int) error {
	if to == nil {
		err := f.Consumer.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		if err != nil {
			return err
		}
	} else if err := f.WithBroker(to).offloadNamespace(ctx, namespace, false); err != nil {
		return err
	}
	if err := f.run(ctx, Web, namespace, replicas); err != nil {
		return err
	}
	return f.Consumer.rollout(ctx, namespace, Web)
}

// offloadNamespace makes the namespace, and waits until Liqo has taken note: pods made earlier would stay at home. With stayHome,
// pods may run on the consumer as well.
func (f *Federation) offloadNamespace(ctx context.Context, namespace string, stayHome bool) error {
	pods := "Remote"
	if stayHome {
		pods = "LocalAndRemote"
	}
	err := f.Consumer.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	return f.offload(ctx, namespace, f.Broker, liqo.MappingDefault, pods)
}

// Offload makes the pods of a namespace of the consumer go to a cluster, to a namespace of the same name, and waits until Liqo has
// taken note.
func (f *Federation) Offload(ctx context.Context, namespace string, to *Cluster) error {
	return f.offload(ctx, namespace, to, liqo.MappingSame, "Remote")
}

// offload makes the pods of a namespace of the consumer go where a strategy of Liqo says, which is called alike in all lines, and waits
// until Liqo has taken note, and the cluster has the namespace: pods made earlier would stay at home.
func (f *Federation) offload(ctx context.Context, namespace string, to *Cluster, mapping liqo.Mapping, pods string) error {
	kind := f.Consumer.Line.Kinds().Offloading
	err := f.apply(ctx, "offloading", "${NAMESPACE}", namespace, "${API}", f.Consumer.OffloadingAPI(), "${CLUSTER_ID}", string(to.ID),
		"${MAPPING}", string(mapping), "${PODS}", pods)
	if err != nil {
		return fmt.Errorf("offload namespace %s: %w", namespace, err)
	}
	return Until(ctx, patience, func(ctx context.Context) error {
		o, err := liqoline.ReadOffloading(ctx, f.Consumer, f.Consumer.Line, kind, namespace)
		if err != nil || o == nil {
			return cmp.Or(err, fmt.Errorf("namespace %s is not offloaded", namespace))
		}
		if !o.Seen || !f.Consumer.Line.ReceptionOf(o.Object, cluster.Identity{ID: to.ID, Name: to.Name}).Present {
			return fmt.Errorf("%s does not have namespace %s yet", to.Name, namespace)
		}
		return nil
	})
}

// run applies the manifest of a workload to the consumer.
func (f *Federation) run(ctx context.Context, workload, namespace string, replicas int) error {
	return f.apply(ctx, workload, "${NAMESPACE}", namespace, "${BROKER_ID}", string(f.Broker.ID), "${REPLICAS}", strconv.Itoa(replicas))
}

// apply applies one of the manifests to the consumer, with what is to stand in place of what.
func (f *Federation) apply(ctx context.Context, name string, oldnew ...string) error {
	manifest, err := manifests.ReadFile("manifests/" + name + ".yaml")
	if err != nil {
		return err
	}
	return f.Consumer.ApplyManifests(ctx, strings.NewReplacer(oldnew...).Replace(string(manifest)))
}

// Remove deletes a namespace of the consumer, and waits until its twins are gone as well.
func (f *Federation) Remove(ctx context.Context, namespace string) error {
	if err := f.deleteNamespace(ctx, namespace); err != nil {
		return err
	}
	return f.Removed(ctx, namespace)
}

// Empty deletes a namespace of the consumer, and waits until none of its pods is left on any cluster. The namespace and its twins take
// longer: Kubernetes waits for 5 s before it looks at one that is to go, in one cluster after the other, and 8 s before it looks again.
func (f *Federation) Empty(ctx context.Context, namespace string) error {
	// In this order, nothing recreates the pods.
	if err := f.deleteNamespace(ctx, namespace); err != nil {
		return err
	}
	if _, err := f.Consumer.Kubectl(ctx, "delete", "deployments,pods", "--all", "--namespace="+namespace, "--wait=false"); err != nil {
		return err
	}
	return Until(ctx, patience, func(ctx context.Context) error {
		for _, c := range f.Clusters() {
			var pods corev1.PodList
			if err := c.List(ctx, &pods); err != nil {
				return err
			}
			for i := range pods.Items {
				if twinName(namespace, pods.Items[i].Namespace) {
					return fmt.Errorf("cluster %s still has pod %s in namespace %s", c.Name, pods.Items[i].Name, pods.Items[i].Namespace)
				}
			}
		}
		return nil
	})
}

// Removed waits until a namespace of the consumer that was deleted is gone, and its twins as well. Three clusters wait for one another
// there, each of which looks only now and then.
func (f *Federation) Removed(ctx context.Context, namespace string) error {
	return Until(ctx, 2*patience, func(ctx context.Context) error {
		for _, c := range f.Clusters() {
			var namespaces corev1.NamespaceList
			if err := c.List(ctx, &namespaces); err != nil {
				return err
			}
			for i := range namespaces.Items {
				if name := namespaces.Items[i].Name; twinName(namespace, name) {
					return fmt.Errorf("cluster %s still has namespace %s", c.Name, name)
				}
			}
		}
		return nil
	})
}

func (f *Federation) deleteNamespace(ctx context.Context, namespace string) error {
	_, err := f.Consumer.Kubectl(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
	return err
}

// twinName reports whether a namespace has the name of a namespace of the consumer, or one that Liqo makes of it: it appends the names
// of clusters.
func twinName(namespace, name string) bool {
	return name == namespace || strings.HasPrefix(name, namespace+"-")
}

// Scale gives a Deployment of the consumer another number of replicas, if there is such a Deployment.
func (f *Federation) Scale(ctx context.Context, namespace, name string, replicas int) error {
	var deployment appsv1.Deployment
	err := f.Consumer.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &deployment)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Consumer.Kubectl(ctx, "scale", "--namespace="+namespace, "deployment/"+name, "--replicas="+strconv.Itoa(replicas))
	return err
}

// ReadyReplicas returns how many pods of a Deployment of the consumer are ready.
func (f *Federation) ReadyReplicas(ctx context.Context, namespace, name string) (int, error) {
	var deployment appsv1.Deployment
	if err := f.Consumer.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &deployment); err != nil {
		return 0, err
	}
	return int(deployment.Status.ReadyReplicas), nil
}

// A Copy is a pod of the consumer, and where it really runs.
type Copy struct {
	Name  string
	Ready bool

	RunsOn  *Cluster          // Nil as long as it runs nowhere.
	Address map[string]string // By cluster name: the address that the cluster shows for it.
	Path    Path
}

// Path says how the consumer reaches a pod.
type Path string

// Paths.
const (
	PathDirect Path = "direct" // By the tunnel between the consumer and the provider.
	PathRelay  Path = "relay"  // Through the broker.
)

// Copies returns the pods of a namespace of the consumer, by name.
func (f *Federation) Copies(ctx context.Context, namespace string) ([]Copy, error) {
	var pods corev1.PodList
	if err := f.Consumer.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var copies []Copy
	for i := range pods.Items {
		if !pods.Items[i].DeletionTimestamp.IsZero() {
			continue
		}
		copies = append(copies, Copy{Name: pods.Items[i].Name, Address: map[string]string{}})
	}
	slices.SortFunc(copies, func(a, b Copy) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range f.Clusters() {
		if err := f.trace(ctx, c, copies, namespace); err != nil {
			return nil, err
		}
	}
	return copies, f.setPaths(ctx, copies)
}

// LookAgain notes what the consumer shows for copies that Copies returned. One that the consumer has no more is not ready and has no
// address.
func (f *Federation) LookAgain(ctx context.Context, namespace string, copies []Copy) error {
	for i := range copies {
		copies[i].Ready, copies[i].Address[f.Consumer.Name], copies[i].Path = false, "", ""
	}
	if err := f.trace(ctx, f.Consumer, copies, namespace); err != nil {
		return err
	}
	return f.setPaths(ctx, copies)
}

// Connected reports whether the consumer's tunnel to another cluster is up.
func (f *Federation) Connected(ctx context.Context, other *Cluster) (bool, error) {
	link, err := f.Consumer.Link(ctx, other)
	return link != nil && link.Connected, err
}

// trace notes what a cluster shows for the copies. Liqo gives a pod the same name on all clusters, and a namespace one that
// starts with its name on the consumer.
func (f *Federation) trace(ctx context.Context, c *Cluster, copies []Copy, namespace string) error {
	var pods corev1.PodList
	if err := c.List(ctx, &pods); err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return err
	}
	isReal := map[string]bool{}
	for i := range nodes.Items {
		isReal[nodes.Items[i].Name] = liqo.NodeCluster(&nodes.Items[i]) == ""
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		at := slices.IndexFunc(copies, func(copied Copy) bool { return copied.Name == pod.Name })
		if at < 0 || !strings.HasPrefix(pod.Namespace, namespace) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		copies[at].Address[c.Name] = pod.Status.PodIP
		if isReal[pod.Spec.NodeName] {
			copies[at].RunsOn = c
		}
		if c == f.Consumer {
			copies[at].Ready = podstate.Ready(pod)
		}
	}
	return nil
}

// setPaths says how the consumer reaches each copy: directly, if the address that it shows is one that it has given to the pods of
// the cluster where the copy runs. A copy that has no address yet has no path.
func (f *Federation) setPaths(ctx context.Context, copies []Copy) error {
	links, err := f.Consumer.Liqo().Links(ctx)
	if err != nil {
		return err
	}
	for i := range copies {
		copied := &copies[i]
		address, err := netip.ParseAddr(copied.Address[f.Consumer.Name])
		if err != nil || copied.RunsOn == nil {
			continue
		}
		copied.Path = PathRelay
		for j := range links {
			link := &links[j]
			if link.Negotiating == nil && link.Peer == copied.RunsOn.ID && link.Path.Pods.Seen.Contains(address) {
				copied.Path = PathDirect
			}
		}
	}
	return nil
}

// Service returns the address and the port of a Service of the consumer.
func (f *Federation) Service(ctx context.Context, namespace, name string) (string, error) {
	var service corev1.Service
	if err := f.Consumer.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port), nil
}

// RoundTrip returns the shortest of a few times that a TCP connection takes from the consumer's pod `tools` to an address.
func (f *Federation) RoundTrip(ctx context.Context, address string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	dial, err := f.Consumer.dialer(ctx)
	if err != nil {
		return 0, err
	}
	best := time.Duration(0)
	for range 3 {
		began := time.Now()
		conn, err := dial(ctx, "tcp", address+":8080")
		if err != nil {
			return 0, err
		}
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
		if err := conn.Close(); err != nil {
			return 0, err
		}
	}
	return best, nil
}

// answersWithin is how long a web server may take.
const answersWithin = 10 * time.Second

// Host asks a web server of the workload Web at HOST:PORT for its host name, from the network of the consumer's pod `tools`.
func (f *Federation) Host(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	dial, err := f.Consumer.dialer(ctx)
	if err != nil {
		return "", err
	}
	asks := newProber(ctx, dial)
	defer asks.Stop()
	asks.client.Timeout = 0 // That of the context.
	return asks.host("http://" + address + "/")
}

// HostByUDP asks a web server of the workload Web at HOST:PORT for its host name by a datagram, from the network of the cluster's pod
// `tools`.
func (c *Cluster) HostByUDP(ctx context.Context, address string) (string, error) {
	dial, err := c.dialer(ctx)
	if err != nil {
		return "", err
	}
	conn, err := dial(ctx, "udp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(probePatience)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		return "", fmt.Errorf("send a datagram to %s: %w", address, err)
	}
	answer := make([]byte, 256)
	n, err := conn.Read(answer)
	if err != nil {
		return "", fmt.Errorf("wait for the datagram of %s: %w", address, err)
	}
	return string(answer[:n]), nil
}

// Hosts asks a Service of web servers of the workload Web for their host names, as many times, each on a connection of its own, from the
// consumer's pod `tools`. A connection goes to any of them: who wants to see all asks far more often than there are servers.
func (f *Federation) Hosts(ctx context.Context, service string, times int) ([]string, error) {
	output, err := f.Consumer.Curl(ctx, "--header", "Connection: close", fmt.Sprintf("http://%s/?[1-%d]", service, times))
	if err != nil {
		return nil, err
	}
	var hosts []string
	for answers := json.NewDecoder(strings.NewReader(output)); ; {
		var answer struct {
			Host string `json:"host"`
		}
		if err := answers.Decode(&answer); errors.Is(err, io.EOF) {
			return hosts, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what %s answered: %w", service, err)
		}
		hosts = append(hosts, answer.Host)
	}
}
