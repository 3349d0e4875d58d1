// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/party"
	"github.com/capacitorset/liqo-broker/test/lab"
	"github.com/capacitorset/liqo-broker/test/lab/node"
)

// CatalogName is the name of the CatalogRegistry by which clusters use the registry of the market.
const CatalogName = "lab"

const (
	// connector is the Deployment of the connector, and its namespace.
	connector = "liqo-broker-connector"
	// negotiationPort is the port of a node at which buyers negotiate (deploy/connector/services.yaml).
	negotiationPort = 30446
	// registryName, registryAddress and registryPort are where the registry of the market is.
	registryName, registryAddress, registryPort = "registry", "172.30.0.100", 8443
	// strangerAddress is where a machine is that belongs to nobody.
	strangerAddress = "172.30.0.101"
)

// ConnectorSettings say what a connector of a cluster does.
type ConnectorSettings struct {
	// Sells has the cluster sell what its nodes have, or what its broker aggregates.
	Sells, Aggregate bool
	// Flags are given to the connector besides those of the manifests.
	Flags []string
}

// InstallConnector installs the connector on a cluster as deploy/connector says, and guards the cluster as `kubectl liqo-broker guard` does.
func (f *Federation) InstallConnector(ctx context.Context, c *Cluster, s ConnectorSettings, progress *Progress) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	for _, image := range []string{connector, "liqo-broker", "liqo-broker-vk"} {
		if err := c.load(ctx, f.archive(image), options.Tag); err != nil {
			return err
		}
	}
	manifests, err := c.Kubectl(ctx, "kustomize", f.path("deploy", "connector"))
	if err != nil {
		return err
	}
	replace := []string{"capacitorset/liqo-broker-connector:v0.1.0", "capacitorset/liqo-broker-connector:" + options.Tag, `share: "30"`, `share: "90"`, "drain: 5m", "drain: 20s"}
	if s.Sells {
		replace = append(replace, `endpoint: ""`, fmt.Sprintf("endpoint: https://%s:%d", c.Lab.Address, negotiationPort))
	}
	if err := c.Apply(ctx, strings.NewReplacer(replace...).Replace(manifests)); err != nil {
		return err
	}
	flags := s.Flags
	if s.Aggregate {
		flags = append(flags, "--broker")
	}
	if len(flags) > 0 {
		if _, err := c.addFlags(ctx, connector, connector, flags...); err != nil {
			return err
		}
	}
	if err := c.rollout(ctx, connector, connector); err != nil {
		return err
	}
	return c.with(ctx, options, progress, (*install.Installer).Guard)
}

// Guard guards a cluster with a connector, as `kubectl liqo-broker guard` does. Its images must be loaded.
func (f *Federation) Guard(ctx context.Context, c *Cluster, progress *Progress) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	return c.with(ctx, options, progress, (*install.Installer).Guard)
}

// InstallMarket runs a registry on a machine of its own, and installs connectors that use it: the providers sell, the consumer buys.
func (f *Federation) InstallMarket(ctx context.Context, progress *Progress) (*Registry, error) {
	host, err := f.machine(ctx, registryName, registryAddress)
	if err != nil {
		return nil, err
	}
	r := &Registry{URL: fmt.Sprintf("https://%s:%d", registryAddress, registryPort), host: host}
	if err := progress.Step(ctx, "the registry runs on a machine of its own, outside of all clusters", r.Run); err != nil {
		return nil, err
	}
	err = progress.Step(ctx, "consumer, provider-a and provider-b have connectors, which join the registry", func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, c := range []*Cluster{f.Consumer, f.ProviderA, f.ProviderB} {
			group.Go(func() error {
				return f.joinMarket(ctx, r, c, ConnectorSettings{Sells: c != f.Consumer}, progress)
			})
		}
		return group.Wait()
	})
	if err != nil {
		r.Kill()
		return nil, err
	}
	return r, nil
}

// BrokerTrades installs the broker on the cluster of the same name, and a connector that sells what it aggregates.
func (f *Federation) BrokerTrades(ctx context.Context, r *Registry, progress *Progress) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	if err := f.LoadImages(ctx, options.Tag); err != nil {
		return err
	}
	if err := f.InstallBroker(ctx, progress); err != nil {
		return err
	}
	return f.joinMarket(ctx, r, f.Broker, ConnectorSettings{Sells: true, Aggregate: true}, progress)
}

// joinMarket installs the connector of a cluster, which uses the registry.
func (f *Federation) joinMarket(ctx context.Context, r *Registry, c *Cluster, s ConnectorSettings, progress *Progress) error {
	if err := f.InstallConnector(ctx, c, s, progress); err != nil {
		return err
	}
	return r.Join(ctx, c)
}

// Stranger returns a machine that is neither of a cluster nor of the registry, and its address.
func (f *Federation) Stranger(ctx context.Context) (*lab.Host, string, error) {
	host, err := f.machine(ctx, "stranger", strangerAddress)
	return host, strangerAddress, err
}

// machine returns a machine outside of all clusters, which sees the repository's bin.
func (f *Federation) machine(ctx context.Context, name, address string) (*lab.Host, error) {
	host := f.lab.Host(name)
	if host.Exists() {
		return host, nil
	}
	// The command makes it, which can become a machine's first process.
	add := exec.CommandContext(ctx, f.path("bin", "lab"), "host", name, address, f.path("bin"))
	if output, err := add.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w: %s", add, err, output)
	}
	return host, nil
}

// Peered reports whether the lab was made with peerings.
func (f *Federation) Peered() bool { return len(f.lab.Topology().Peerings) > 0 }

// Connector is the connector of a cluster.
func (f *Federation) Connector(c *Cluster) Process {
	return Process{c, connector, connector, "connector"}
}

// Party returns who a cluster with a connector is as a party of the catalog.
func (f *Federation) Party(ctx context.Context, c *Cluster) (party.ID, error) {
	id, err := identity.Load(ctx, c, connector)
	return id.ID(), err
}

// RotateKey has the connector of a cluster replace its key, and waits until it has begun again with the new one.
func (c *Cluster) RotateKey(ctx context.Context) error {
	before, err := identity.Load(ctx, c, connector)
	if err != nil {
		return err
	}
	running, err := c.runningContainer(ctx)
	if err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "annotate", "--namespace="+connector, "secret/"+identity.SecretName, identity.AnnotationRotate+"=now"); err != nil {
		return err
	}
	return Until(ctx, patience, func(ctx context.Context) error {
		now, err := identity.Load(ctx, c, connector)
		if err != nil {
			return err
		}
		again, err := c.runningContainer(ctx)
		if err != nil {
			return err
		}
		switch {
		case len(now.Keys().Chain()) != len(before.Keys().Chain())+1:
			return fmt.Errorf("the party of %s has %d keys, as before", c.Name, len(now.Keys().Chain()))
		case again == running:
			return fmt.Errorf("the connector of %s uses its old key: it has not begun again", c.Name)
		}
		return nil
	})
}

// runningContainer returns which container runs the connector: its ID, once it is ready.
func (c *Cluster) runningContainer(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(connector)); err != nil {
		return "", err
	}
	for i := range pods.Items {
		for _, status := range pods.Items[i].Status.ContainerStatuses {
			if status.Name == "connector" && status.Ready {
				return status.ContainerID, nil
			}
		}
	}
	return "", fmt.Errorf("the connector of %s is not ready", c.Name)
}

// A Registry is a registry of the catalog on a machine of its own, outside of all clusters.
type Registry struct {
	// URL is where it is, and Fingerprint is that of its key; both are known once it runs.
	URL, Fingerprint string

	host *lab.Host
	end  context.CancelFunc
	done chan error
	log  *bytes.Buffer
}

// Run runs the registry, with the metrics where deploy/catalog has them, until it is killed, and waits until it answers.
func (r *Registry) Run(ctx context.Context) error {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	r.end, r.done, r.log = end, make(chan error, 1), &bytes.Buffer{}
	go func() {
		r.done <- r.host.Exec(running, node.Command{Args: []string{"sh", "-c", "mkdir -p /var/lib/liqo-broker && exec catalog serve --metrics-address=:8445 --log-format=json"}, Stdout: r.log, Stderr: r.log})
	}()
	return Until(ctx, patience, func(ctx context.Context) error {
		select {
		case err := <-r.done:
			r.done <- err
			return fmt.Errorf("the registry has ended: %w: %s", err, r.log)
		default:
		}
		answer, err := r.run(ctx, "curl", "--silent", "--fail", "--max-time", "2", "http://127.0.0.1:8444/readyz")
		if err != nil {
			return fmt.Errorf("the registry is not ready: %w: %s", err, answer)
		}
		key, err := r.run(ctx, "catalog", "fingerprint")
		r.Fingerprint = strings.TrimSpace(key)
		return err
	})
}

// Kill kills the registry with SIGKILL. One that has ended stays so.
func (r *Registry) Kill() {
	r.end()
	r.done <- <-r.done
}

// Listening returns the TCP ports on which the registry listens for others than its machine, in order.
func (r *Registry) Listening() ([]int, error) { return r.host.Listening() }

// run runs a program on the registry's machine, and returns what it prints.
func (r *Registry) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := r.host.Exec(ctx, node.Command{Args: args, Stdout: &out, Stderr: &out})
	return out.String(), err
}

// Watches returns how many watches have begun in one way since the registry was run last: resumed, or with a snapshot.
func (r *Registry) Watches(ctx context.Context, how string) (int, error) {
	text, err := r.run(ctx, "curl", "--silent", "--fail", "http://127.0.0.1:8445/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		var n int
		if _, err := fmt.Sscanf(line, `liqo_broker_catalog_watches_total{begin="`+how+`"} %d`, &n); err == nil {
			return n, nil
		}
	}
	return 0, nil
}

// Token makes a token that lets one party in.
func (r *Registry) Token(ctx context.Context) (string, error) {
	token, err := r.run(ctx, "catalog", "tokens", "create", "--uses=1")
	if err != nil {
		return "", fmt.Errorf("make a token: %w: %s", err, token)
	}
	return strings.TrimSpace(token), nil
}

// Revoke takes a party out of the registry, with its offers.
func (r *Registry) Revoke(ctx context.Context, id string) error {
	if said, err := r.run(ctx, "catalog", "parties", "revoke", id); err != nil {
		return fmt.Errorf("revoke party %s: %w: %s", id, err, said)
	}
	return nil
}

// Join has the connector of a cluster use the registry, which lets it in by a token.
func (r *Registry) Join(ctx context.Context, c *Cluster) error {
	token, err := r.Token(ctx)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: connector, Name: "registry-token"},
		Data:       map[string][]byte{"token": []byte(token)},
	}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, secret)); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(c.Create(ctx, &connectorv1alpha1.CatalogRegistry{
		ObjectMeta: metav1.ObjectMeta{Name: CatalogName},
		Spec: connectorv1alpha1.CatalogRegistrySpec{
			URL: r.URL, Fingerprint: r.Fingerprint, TokenSecret: connectorv1alpha1.SecretReference{Name: secret.Name},
		},
	}))
}
