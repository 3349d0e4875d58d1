// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/quota"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
	"github.com/capacitorset/liqo-broker/test/docs"
	"github.com/capacitorset/liqo-broker/test/lab"
	"github.com/capacitorset/liqo-broker/test/lab/node"
)

// RegistryName is the name of the Registry by which clusters use the registry of the market (deploy/examples/trade/registry.yaml).
const RegistryName = "my-registry"

const (
	// connector is the Deployment of the connector, and its namespace; guard is that of the guard.
	connector, guard = "liqo-broker-connector", "liqo-broker-guard"
	// negotiationPort is the port of a node at which buyers negotiate (deploy/connector/services.yaml).
	negotiationPort = 30446
	// registryName, registryAddress and registryPort are where the registry of the market is.
	registryName, registryAddress, registryPort = "registry", "172.30.0.100", 8443
	// strangerAddress is where a machine is that belongs to nobody.
	strangerAddress = "172.30.0.101"
	// tokenName is the Secret with the token that lets a cluster in at the registry, as the page for sellers calls it.
	tokenName = "my-registry-token"
)

// Guard guards a cluster with a connector, as `kubectl liqo-broker guard` does. Its images must be loaded.
func (f *Federation) Guard(ctx context.Context, c *Cluster, progress *Progress) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	return c.with(ctx, options, progress, (*install.Installer).Guard)
}

// The kinds of what has the API server refuse something.
const (
	mutating, validating = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
	policyBinding        = "ValidatingAdmissionPolicyBinding"
)

// LiqoAlone takes the webhooks of the guard and its policies from the API server of a cluster, and what its quotas bound, until the
// returned function is called, which can be repeated. All else of the guard stays: its NetworkPolicies, our virtual kubelet, and whom Liqo
// asks what to offer.
func (c *Cluster) LiqoAlone(ctx context.Context) (end func() error, err error) {
	admits, err := c.without(ctx, mutating, validating, policyBinding)
	if err != nil {
		return nil, err
	}
	bounds, err := c.unbounded(ctx)
	end = func() error { return errors.Join(admits(), bounds()) }
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// WithoutPolicies takes the guard's policies from the API server of a cluster. [Federation.Guard] gives them back, and the returned
// function has them belong to who had installed them.
func (c *Cluster) WithoutPolicies(ctx context.Context) (end func() error, err error) {
	return c.without(ctx, policyBinding)
}

// WithoutWebhooks takes the guard's webhooks from the API server of a cluster, until the returned function is called, which can be
// repeated.
func (c *Cluster) WithoutWebhooks(ctx context.Context) (end func() error, err error) {
	return c.without(ctx, mutating, validating)
}

// without takes what the guard has of some kinds from the API server of a cluster, until the returned function is called, which can be
// repeated.
func (c *Cluster) without(ctx context.Context, kinds ...string) (end func() error, err error) {
	var taken []*unstructured.Unstructured
	end = func() error {
		var errs []error
		for _, o := range taken {
			o.SetResourceVersion("")
			o.SetUID("")
			errs = append(errs, c.putBack(context.WithoutCancel(ctx), o))
		}
		return errors.Join(errs...)
	}
	for _, kind := range kinds {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind + "List"})
		err := c.List(ctx, all, client.MatchingLabels{"app.kubernetes.io/name": guard})
		if meta.IsNoMatchError(err) {
			continue // Kubernetes before 1.30 has no policies.
		}
		if err == nil && len(all.Items) == 0 {
			err = fmt.Errorf("%s has no %s", guard, kind)
		}
		for i := range all.Items {
			taken = append(taken, &all.Items[i])
			err = errors.Join(err, c.Delete(ctx, all.Items[i].DeepCopy()))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("take the guard from %s: %w", c.Name, err), end())
		}
	}
	return end, nil
}

// putBack creates an object, or has one that somebody else has created meanwhile belong to who had the first one.
func (c *Cluster) putBack(ctx context.Context, o *unstructured.Unstructured) error {
	err := c.Create(ctx, o.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	is := o.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), is); err != nil {
		return err
	}
	before := client.MergeFrom(is.DeepCopy())
	is.SetLabels(o.GetLabels())
	is.SetAnnotations(o.GetAnnotations())
	return c.Patch(ctx, is, before)
}

// unbounded has the guard's quotas on a cluster bound nothing until the returned function is called, which can be repeated. The guard looks
// at what is in a quota only if its own mark on it has changed.
func (c *Cluster) unbounded(ctx context.Context) (end func() error, err error) {
	before := map[client.ObjectKey]corev1.ResourceList{}
	set := func(ctx context.Context, key client.ObjectKey, hard corev1.ResourceList) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			var is corev1.ResourceQuota
			if err := c.Get(ctx, key, &is); err != nil {
				return client.IgnoreNotFound(err) // Its namespace has ended.
			}
			is.Spec.Hard = hard
			return c.Update(ctx, &is)
		})
	}
	end = func() error {
		var errs []error
		for key, hard := range before {
			errs = append(errs, set(context.WithoutCancel(ctx), key, hard))
		}
		return errors.Join(errs...)
	}
	var all corev1.ResourceQuotaList
	if err := c.List(ctx, &all); err != nil {
		return end, err
	}
	for i := range all.Items {
		if all.Items[i].Name != quota.Name {
			continue
		}
		key := client.ObjectKeyFromObject(&all.Items[i])
		before[key] = all.Items[i].Spec.Hard
		if err := set(ctx, key, nil); err != nil {
			return end, err
		}
	}
	return end, nil
}

// InstallMarket runs a registry on a machine of its own, and has the consumer buy and the providers sell: all of it by the commands of the
// pages. The page for operators is docs/trade/operator.md; the tutorial runs the registry by the same commands.
func (f *Federation) InstallMarket(ctx context.Context, progress *Progress) (*Registry, error) {
	host, err := f.machine(ctx, registryName, registryAddress)
	if err != nil {
		return nil, err
	}
	serve, err := f.serve("docs/trade/operator.md")
	if err != nil {
		return nil, err
	}
	if other, err := f.serve("docs/tutorials/trade.md"); err != nil {
		return nil, err
	} else if other != serve {
		return nil, fmt.Errorf("the tutorial runs the registry by\n%s, and not by\n%s", other, serve)
	}
	r := &Registry{URL: fmt.Sprintf("https://%s:%d", registryAddress, registryPort), host: host, serve: serve}
	if err := progress.Step(ctx, "the registry runs on a machine of its own, outside of all clusters", r.Run); err != nil {
		return nil, err
	}
	err = progress.Step(ctx, "consumer, provider-a and provider-b have connectors, which join the registry", func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, c := range []*Cluster{f.Consumer, f.ProviderA, f.ProviderB} {
			group.Go(func() error { return f.JoinMarket(ctx, r, c) })
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
	return f.JoinMarket(ctx, r, f.Broker)
}

// JoinMarket does what the pages say to a cluster that buys or sells, until it uses the registry. It does nothing else: TestTraders
// compares.
func (f *Federation) JoinMarket(ctx context.Context, r *Registry, c *Cluster) error {
	if err := f.LoadTrader(ctx, c); err != nil {
		return err
	}
	// An earlier run on this lab has left them.
	for _, left := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: connector, Name: tokenName}},
		&connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: RegistryName}},
	} {
		if err := c.Delete(ctx, left); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return err
		}
	}
	for _, page := range f.pagesOf(c) {
		if err := f.doAsPageSays(ctx, page, r, c); err != nil {
			return err
		}
	}
	return nil
}

// LoadTrader loads the images into a cluster that one which trades runs, as they were built last.
func (f *Federation) LoadTrader(ctx context.Context, into *Cluster) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	for _, image := range []string{connector, "liqo-broker", "liqo-broker-vk", "liqo-broker-network-manager"} {
		if err := into.load(ctx, f.archive(image), options.Tag); err != nil {
			return err
		}
	}
	return nil
}

// pagesOf returns the pages that somebody reads whose cluster trades, in their order.
func (f *Federation) pagesOf(c *Cluster) []string {
	if c == f.Consumer {
		return []string{"docs/trade/buyer.md", "docs/trade/provider.md"} // A buyer joins a registry as sellers do.
	}
	return []string{"docs/trade/provider.md"}
}

func (f *Federation) doAsPageSays(ctx context.Context, page string, r *Registry, c *Cluster) (err error) {
	reader, err := f.ReadToJoin(ctx, page, r, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	return reader.All(ctx)
}

// ReadToJoin returns a reader of what a page says to a cluster that is to use the registry, by whose operator it was given what it needs.
func (f *Federation) ReadToJoin(ctx context.Context, page string, r *Registry, c *Cluster) (*Reader, error) {
	token, err := r.Token(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := fmt.Sprintf("https://%s:%d", c.Lab.Address, negotiationPort)
	reader, err := f.ReadRelease(page, "InstallMarket", soldAt(endpoint)...)
	if err != nil {
		return nil, err
	}
	reader.only(c)
	reader.Values["TOKEN"] = token
	reader.Values["INVITATION"] = discovery.Invitation{URL: r.URL, Fingerprint: r.Fingerprint, Token: token}.String()
	err = reader.Edit(exampleRegistry, joined(r.URL, r.Fingerprint)...)
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return reader, nil
}

// exampleRegistry is the file in which people write where a registry is.
const exampleRegistry = "deploy/examples/trade/registry.yaml"

// soldAt is what stands in the place of a seller's endpoint in the pages, and joined what people write into the file of a registry.
func soldAt(endpoint string) []string { return []string{"https://203.0.113.7:30446", endpoint} }

func joined(url, fingerprint string) []string {
	return []string{"https://registry.example:30443", url, exampleParty, fingerprint}
}

// serve returns the commands by which the page for operators runs a registry. Its metrics are where deploy/registry has them.
func (f *Federation) serve(page string) (string, error) {
	blocks, err := docs.Read(f.root, page, "InstallMarket")
	if err != nil {
		return "", err
	}
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool { return !slices.Contains(b.On, registryName) })
	if len(blocks) != 1 {
		return "", fmt.Errorf("%s has %d blocks that run the registry, want 1", page, len(blocks))
	}
	// So that the registry itself is what is killed.
	return strings.Replace(blocks[0].Text, "registry serve", "exec registry serve --metrics-address=:8445", 1), nil
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

// Party returns who a cluster with a connector is as a party.
func (f *Federation) Party(ctx context.Context, c *Cluster) (party.ID, error) {
	id, err := c.Identity(ctx)
	return id.ID(), err
}

// Identity returns the key of a cluster with a connector, as has it whoever reads its Secret.
func (c *Cluster) Identity(ctx context.Context) (identity.Identity, error) {
	return identity.Load(ctx, c, connector)
}

// RotateKey has the connector of a cluster replace its key, as docs/trade/provider.md says, and waits until it has begun again with the new
// one.
func (f *Federation) RotateKey(ctx context.Context, c *Cluster) (err error) {
	before, err := c.Identity(ctx)
	if err != nil {
		return err
	}
	running, err := c.runningContainer(ctx)
	if err != nil {
		return err
	}
	reader, err := f.ReadRelease("docs/trade/provider.md", "RotateKey")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	reader.only(c)
	if _, err := reader.Next(ctx, "kubectl annotate"); err != nil {
		return err
	}
	return Until(ctx, patience, func(ctx context.Context) error {
		now, err := c.Identity(ctx)
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

// A Registry is a registry on a machine of its own, outside of all clusters.
type Registry struct {
	// URL is where it is, and Fingerprint is that of its key; both are known once it runs.
	URL, Fingerprint string

	host *lab.Host
	// serve are the commands that run it.
	serve string
	end   context.CancelFunc
	done  chan error
	log   *bytes.Buffer
}

// Run runs the registry, with the metrics where deploy/registry has them, until it is killed, and waits until it answers.
func (r *Registry) Run(ctx context.Context) error {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	r.end, r.done, r.log = end, make(chan error, 1), &bytes.Buffer{}
	go func() {
		r.done <- r.host.Exec(running, node.Command{Args: []string{"sh", "-ec", r.serve}, Stdout: r.log, Stderr: r.log})
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
		key, err := r.run(ctx, "registry", "fingerprint")
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
		if _, err := fmt.Sscanf(line, `liqo_broker_registry_watches_total{begin="`+how+`"} %d`, &n); err == nil {
			return n, nil
		}
	}
	return 0, nil
}

// Token makes a token that lets one party in.
func (r *Registry) Token(ctx context.Context) (string, error) {
	token, err := r.run(ctx, "registry", "tokens", "create", "--uses=1")
	if err != nil {
		return "", fmt.Errorf("make a token: %w: %s", err, token)
	}
	return strings.TrimSpace(token), nil
}

// Revoke takes a party out of the registry, with its offers.
func (r *Registry) Revoke(ctx context.Context, id string) error {
	if said, err := r.run(ctx, "registry", "parties", "revoke", id); err != nil {
		return fmt.Errorf("revoke party %s: %w: %s", id, err, said)
	}
	return nil
}
