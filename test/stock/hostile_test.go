// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/hostile"
	"github.com/capacitorset/liqo-broker/test/lab"
)

const (
	// newcomerID is a cluster that nobody knows, and staff one that is called like a group of people.
	newcomerID, staff = "hostile-guest", "hostile-staff"
	// slices1 is the kind by which clusters ask for resources.
	slices1 = "resourceslices.authentication.liqo.io"
)

// restOf is how a kubeconfig uses a cluster.
func restOf(t *testing.T, config *clientcmdapi.Config) *rest.Config {
	t.Helper()
	c, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// administrator is how the administrator of a cluster uses it.
func administrator(t *testing.T, c *lab.Cluster) *rest.Config {
	t.Helper()
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// only returns the one object of a kind in a namespace of a cluster that has some labels.
func only(t *testing.T, c *lab.Cluster, kind, namespace, labels string) string {
	t.Helper()
	names := strings.Fields(kubectl(t, c, "get", kind, "-n", namespace, "-l", labels, "-o", "jsonpath={.items[*].metadata.name}"))
	if len(names) != 1 {
		t.Fatalf("namespace %s of %s has %s %q, want one", namespace, c.Name, kind, names)
	}
	return names[0]
}

// intruders are what the consumer, with the identities that Liqo gave it at the cluster in the middle, and Liqo there for its peers, try
// there. The consumer has a twin namespace.
func intruders(t *testing.T, twin string) []hostile.Row {
	t.Helper()
	const namespaceMaps, copied, own = "namespacemaps.offloading.liqo.io", "liqo.io/replicated=true", "liqo.io/replication=true"
	tenant, providers := "liqo-tenant-"+consumer.Name, "liqo-tenant-"+provider.Name
	who := &hostile.Guest{
		ID: cluster.ID(consumer.Name), At: cluster.ID(broker.Name), Victim: cluster.ID(provider.Name), Node: broker.Name,
		Tenant: tenant, Slice: only(t, broker, slices1, tenant, copied), Map: only(t, broker, namespaceMaps, tenant, copied), Twin: twin,
	}
	kubelet := only(t, consumer, "secrets", "liqo-tenant-"+broker.Name, "liqo.io/identity-type=ResourceSlice")
	err := who.Connect(administrator(t, broker), restOf(t, controlPlane(t, consumer, broker)),
		restOf(t, peer(t, consumer, broker, kubelet)))
	if err != nil {
		t.Fatal(err)
	}
	inside := &hostile.Insider{
		Consumer: cluster.ID(consumer.Name), Tenant: tenant, Slice: who.Slice, Provider: cluster.ID(provider.Name), ProviderTenant: providers,
		Asks: only(t, broker, slices1, providers, own), Offloads: only(t, broker, namespaceMaps, providers, own),
		Nodes: netip.PrefixFrom(nodeOf(t), 24).Masked().String(),
	}
	if err := inside.Connect(administrator(t, broker)); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(who.Rows(), inside.Rows())
}

// nodeOf is the address of the broker's own node.
func nodeOf(t *testing.T) netip.Addr {
	t.Helper()
	address, err := netip.ParseAddr(kubectl(t, broker, "get", "node", broker.Name, "-o",
		`jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`))
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// tried has all rows tried, and honest people do what they do in their place.
func tried(t *testing.T, rows []hostile.Row) (could []string) {
	t.Helper()
	could, err := hostile.TryAll(t.Context(), hostile.Attempts(rows, false), nil)
	if err != nil {
		t.Error(err)
	}
	for i := range rows {
		if legal := rows[i].Legal; legal != nil {
			if err := legal(t.Context()); err != nil {
				t.Errorf("honest people are refused what is like %q: %v", rows[i].Name, err)
			}
		}
	}
	return could
}

// open has all rows succeed.
func open(t *testing.T, rows []hostile.Row) {
	t.Helper()
	var all []string
	for i := range rows {
		all = append(all, rows[i].Name)
	}
	if diff := cmp.Diff(all, tried(t, rows)); diff != "" {
		t.Errorf("what can be done, so that the rest need not be refused any more: -want +got\n%s", diff)
	}
}

// closed has all rows refused, by the rule that is to do it.
func closed(t *testing.T, rows []hostile.Row) {
	t.Helper()
	if could := tried(t, rows); len(could) > 0 {
		t.Errorf("peers could %s", strings.Join(could, ", and "))
	}
}

// A newcomer has a peering user, as liqoctl makes it.
type newcomer struct {
	hostile.Newcomer

	at     *lab.Cluster
	config *clientcmdapi.Config
}

// invite makes a peering user for a cluster that nobody knows, until the test ends.
func invite(t *testing.T, at *lab.Cluster, id string) *newcomer {
	t.Helper()
	liqoctl := func(ctx context.Context, args ...string) (string, error) {
		args = append([]string{"--kubeconfig", at.KubeconfigPath()}, append(args, "peering-user", "--consumer-cluster-id", id)...)
		out, err := exec.CommandContext(ctx, filepath.Join(at.LiqoPath(), "liqoctl"), args...).Output()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return string(out), err
	}
	n := &newcomer{Newcomer: hostile.Newcomer{ID: cluster.ID(id), Tenant: "liqo-tenant-" + id}, at: at}
	t.Cleanup(func() {
		undo(t, at, "delete", "tenants.authentication.liqo.io", "-n", n.Tenant, "--all", "--timeout=1m")
		if _, err := liqoctl(context.WithoutCancel(t.Context()), "delete"); err != nil {
			t.Error(err)
		}
		undo(t, at, "delete", "namespace", n.Tenant, "--ignore-not-found", "--timeout=1m")
	})
	out, err := liqoctl(t.Context(), "generate")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(out, "apiVersion:") // liqoctl says more before it.
	user, err := clientcmd.Load([]byte("apiVersion:" + text))
	if !found || err != nil {
		t.Fatalf("liqoctl says %q: %v", out, err)
	}
	if n.config, err = clientcmd.LoadFromFile(at.KubeconfigPath()); err != nil {
		t.Fatal(err)
	}
	as(n.config, user.AuthInfos[user.Contexts[user.CurrentContext].AuthInfo])
	if err := n.Connect(administrator(t, at), restOf(t, n.config)); err != nil {
		t.Fatal(err)
	}
	return n
}

// arrive has the newcomer show its key and ask for a certificate, in more groups besides Liqo's, as liqoctl does it. It returns why it gets
// none.
func (n *newcomer) arrive(t *testing.T, more ...string) (refusal string) {
	t.Helper()
	labels := map[string]string{"liqo.io/remote-cluster-id": string(n.ID)}
	n.create(t, map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"name": "liqo-nonce", "namespace": n.Tenant, "labels": map[string]string{
				"liqo.io/nonce": "true", "liqo.io/remote-cluster-id": string(n.ID),
			},
		},
	})
	var nonce []byte
	eventually(t, func(ctx context.Context) error {
		out, err := kubectlAs(ctx, t, n.at, n.config, "get", "secret", "-n", n.Tenant, "liqo-nonce", "-o", "jsonpath={.data.nonce}")
		if err == nil && out == "" {
			err = errors.New("Liqo has made no nonce")
		}
		if err != nil {
			return err
		}
		nonce, err = base64.StdEncoding.DecodeString(out)
		return err
	})
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	n.create(t, map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "Tenant",
		"metadata": map[string]any{"name": n.ID, "namespace": n.Tenant, "labels": labels},
		"spec": map[string]any{
			"clusterID": n.ID, "publicKey": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
			"csr": requested(t, key, string(n.ID), append([]string{"liqo.io"}, more...)...), "signature": ed25519.Sign(key, nonce),
		},
	})
	_, refusal = answered(t, n.at, "tenants.authentication.liqo.io", n.Tenant, string(n.ID))
	return refusal
}

// create has the newcomer create an object.
func (n *newcomer) create(t *testing.T, object map[string]any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubectlAs(t.Context(), t, n.at, n.config, "create", "-f", write(t, "object.json", text)); err != nil {
		t.Fatal(err)
	}
}

// drain has the administrator say that the newcomer is out.
func (n *newcomer) drain(t *testing.T) {
	t.Helper()
	kubectl(t, n.at, "patch", "tenants.authentication.liqo.io", "-n", n.Tenant, string(n.ID), "--type=merge", "-p",
		`{"spec": {"tenantCondition": "Drained"}}`)
}

// knocks fails unless something answers a pod of a cluster at the port of a virtual kubelet, whatever it says.
func knocks(ctx context.Context, c *lab.Cluster, address string) error {
	_, err := c.Kubectl(ctx, "exec", "tools", "--", "curl", "-s", "-m", "5", "-o", "/dev/null", "http://"+address+":10250/")
	return err
}

// virtualKubelet returns the address of the pod that stands at the broker for the provider.
func virtualKubelet(t *testing.T) string {
	t.Helper()
	return kubectl(t, broker, "get", "pods", "-n", "liqo-tenant-"+provider.Name, "-l", "offloading.liqo.io/component=virtual-kubelet", "-o",
		"jsonpath={.items[0].status.podIP}")
}

// checkHostile has the consumer, which has a namespace at the broker, the provider and strangers try what they can with Liqo 1.2 alone.
// The broker refuses it, whether daemon and guard run or not, and what honest people do goes on.
func checkHostile(t *testing.T, namespace string) {
	t.Helper()
	twin := namespace + "-" + consumer.Name
	rows := intruders(t, twin)
	t.Run("written", func(t *testing.T) { closed(t, rows) })
	t.Run("endpoints", func(t *testing.T) { checkEndpoints(t, twin) })
	t.Run("newcomers", func(t *testing.T) { checkNewcomers(t) })
	t.Run("certificates", func(t *testing.T) { checkCertificates(t) })
	t.Run("grants", func(t *testing.T) { checkGrants(t) })
	t.Run("keys", func(t *testing.T) {
		for _, of := range []struct{ at, to *lab.Cluster }{{broker, provider}, {consumer, broker}} {
			err := tryApply(t, of.at, leaking(of.to))
			if err == nil || !strings.Contains(err.Error(), "system-namespaces.brokering.liqo.io") {
				t.Errorf("%s offloads the namespace of Liqo: %v", of.at.Name, err)
			}
		}
	})
	t.Run("copied", func(t *testing.T) { checkCopied(t) })
	t.Run("unasked", func(t *testing.T) { checkUnasked(t, rows) })
	checkAddresses(t, namespace)
}

// checkNewcomers has those who have a peering user try what they can. One that does not gets a certificate.
func checkNewcomers(t *testing.T) {
	t.Helper()
	guest := invite(t, broker, newcomerID)
	closed(t, guest.Rows())
	if refusal := guest.arrive(t); refusal != "" {
		t.Fatalf("an honest newcomer is refused: %s", refusal)
	}
	guest.drain(t)
	closed(t, guest.Drained())

	bound(t, broker, staff, "view")
	for name, of := range map[string]struct {
		id, want string
		more     []string
	}{
		"Groups": {"hostile-groups", "the subject must have a common name and one group", []string{administrators}},
		"Staff":  {staff, "group " + staff + " has rights of ClusterRole view", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if refusal := invite(t, broker, of.id).arrive(t, of.more...); !strings.Contains(refusal, of.want) {
				t.Errorf("cluster %s is refused with %q, want %q", of.id, refusal, of.want)
			}
		})
	}
}

// checkCertificates has the consumer ask for a certificate as any peer can with Liqo alone, and as it may.
func checkCertificates(t *testing.T) {
	t.Helper()
	bound(t, broker, administrators, "cluster-admin")
	const want = "the subject must have a common name and one group"
	if _, refusal := request(t, consumer, broker, "one-more-group", consumer.Name, administrators); !strings.Contains(refusal, want) {
		t.Errorf("the consumer is refused one more group with %q, want %q", refusal, want)
	}
	config, refusal := request(t, consumer, broker, "one-group", consumer.Name)
	if refusal != "" {
		t.Errorf("the consumer is refused a certificate of its own: %s", refusal)
	} else if reads, _ := readsKeys(t, broker, config); reads {
		t.Error("the consumer reads the keys of the broker by a certificate of its own")
	}
}

// stays fails when a look finds something while it is quiet.
func stays(t *testing.T, look func(ctx context.Context) error) {
	t.Helper()
	for end := time.Now().Add(quiet); time.Now().Before(end); time.Sleep(time.Second) {
		if err := look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// quiet is how long nothing may come of what was refused: with Liqo alone it takes a second or two.
const quiet = 15 * time.Second

// checkGrants has the consumer ask for more than there is, in the class that Liqo answers.
func checkGrants(t *testing.T) {
	t.Helper()
	const name = "too-much"
	demand(t, consumer, broker, name)
	eventually(t, func(ctx context.Context) error {
		class, err := broker.Kubectl(ctx, "get", slices1, "-n", "liqo-tenant-"+consumer.Name, name, "-o", "jsonpath={.spec.class}")
		if err == nil && class != "liqo-broker" {
			err = fmt.Errorf("the class is %q, want the broker's", class)
		}
		return err
	})
	stays(t, func(ctx context.Context) error {
		cpu, err := consumer.Kubectl(ctx, "get", slices1, "-n", "liqo-tenant-"+broker.Name, name, "-o", "jsonpath={.status.resources.cpu}")
		if err == nil && (cpu == "1k" || cpu == "1000") {
			err = fmt.Errorf("granted are %s cores", cpu)
		}
		return err
	})
}

// checkCopied has the provider say, in its own cluster, that its node is another cluster's. What else it says arrives, before and after.
func checkCopied(t *testing.T) {
	t.Helper()
	const reserved, before, after = "liqo.io/remote-cluster-id", "example.com/before", "example.com/after"
	there, here := "liqo-tenant-"+broker.Name, "liqo-tenant-"+provider.Name
	name := only(t, broker, slices1, here, "liqo.io/replication=true")
	says := func(labels map[string]any) {
		text, err := json.Marshal(map[string]any{"status": map[string]any{"nodeLabels": labels}})
		if err != nil {
			t.Fatal(err)
		}
		kubectl(t, provider, "patch", slices1, "-n", there, name, "--subresource=status", "--type=merge", "-p", string(text))
	}
	labels := func(ctx context.Context) (map[string]string, error) {
		out, err := broker.Kubectl(ctx, "get", slices1, "-n", here, name, "-o", "json")
		var slice struct {
			Status struct {
				NodeLabels map[string]string `json:"nodeLabels"`
			} `json:"status"`
		}
		return slice.Status.NodeLabels, errors.Join(err, json.Unmarshal([]byte(out), &slice))
	}
	arrives := func(label string) {
		eventually(t, func(ctx context.Context) error {
			are, err := labels(ctx)
			if err == nil && are[label] != "yes" {
				err = fmt.Errorf("the broker has of the provider %v, want %s", are, label)
			}
			return err
		})
	}
	says(map[string]any{before: "yes"})
	arrives(before)
	says(map[string]any{reserved: consumer.Name})
	stays(t, func(ctx context.Context) error {
		are, err := labels(ctx)
		if _, has := are[reserved]; err == nil && has {
			err = fmt.Errorf("the broker has of the provider %v", are)
		}
		if err != nil {
			return err
		}
		whose, err := broker.Kubectl(ctx, "get", "nodes", "-l", reserved+"="+consumer.Name+",example.com/before=yes", "-o", "name")
		if err == nil && whose != "" {
			err = fmt.Errorf("%s of the provider is said to be the consumer's", whose)
		}
		return err
	})
	says(map[string]any{reserved: nil, before: nil, after: "yes"})
	arrives(after)
	says(map[string]any{after: nil})
}

// checkEndpoints has the consumer say that a node of the broker is behind one of its Services. No address is opened for that, and one for a
// pod of its own. It says so of a destination that its own virtual kubelet does not know, which would delete it.
func checkEndpoints(t *testing.T, twin string) {
	t.Helper()
	addresses := func(ctx context.Context) ([]string, error) {
		out, err := broker.Kubectl(ctx, "get", "ips.ipam.liqo.io", "-n", twin, "-l", "app.kubernetes.io/managed-by=liqo-broker", "-o",
			"jsonpath={.items[*].spec.ip}")
		return strings.Fields(out), err
	}
	was, err := addresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	foreign, own := nodeOf(t).String(), kubectl(t, consumer, "get", "pod", "tools", "-o", "jsonpath={.status.podIP}")
	slice := fmt.Sprintf(`
apiVersion: offloading.liqo.io/v1beta1
kind: ShadowEndpointSlice
metadata:
  name: hostile
  namespace: %s
  labels:
    kubernetes.io/service-name: home
    endpointslice.kubernetes.io/managed-by: endpointslice.reflection.liqo.io
    offloading.liqo.io/origin: %s
    offloading.liqo.io/destination: elsewhere
spec:
  template:
    addressType: IPv4
    ports: [{name: "", port: 8080, protocol: TCP}]
    endpoints: [{addresses: [%s], conditions: {ready: true}}, {addresses: [%s], conditions: {ready: true}}]
`, twin, consumer.Name, foreign, own)
	identity := peer(t, consumer, broker, only(t, consumer, "secrets", "liqo-tenant-"+broker.Name, "liqo.io/identity-type=ResourceSlice"))
	if _, err := kubectlAs(t.Context(), t, broker, identity, "create", "-f", write(t, "slice.yaml", []byte(slice))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { undo(t, broker, "delete", "shadowendpointslices", "-n", twin, "hostile", "--ignore-not-found") })
	eventually(t, func(ctx context.Context) error {
		are, err := addresses(ctx)
		if err == nil && len(are) != len(was)+1 {
			err = fmt.Errorf("open are %v, want one more than %v", are, was)
		}
		return err
	})
	stays(t, func(ctx context.Context) error {
		are, err := addresses(ctx)
		if err == nil && slices.Contains(are, foreign) {
			err = fmt.Errorf("open are %v, with %s, which is not the consumer's", are, foreign)
		}
		return err
	})
}

// checkUnasked has all of it tried while daemon and guard do not run: policies go on, and webhooks that cannot be asked refuse.
func checkUnasked(t *testing.T, rows []hostile.Row) {
	t.Helper()
	guest := invite(t, broker, "hostile-unasked")
	rows = slices.Concat(rows, guest.Rows())
	could, err := func() ([]string, error) {
		defer stop(t, broker, "liqo-broker", "liqo-broker")()
		defer stop(t, broker, "liqo-broker-guard", "liqo-broker-guard")()
		return hostile.TryAll(t.Context(), hostile.Attempts(rows, true), nil)
	}()
	if err != nil {
		t.Error(err)
	}
	sorted := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(hostile.Open(rows), could, sorted, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what can be done while daemon and guard do not run: -want +got\n%s", diff)
	}
	err = federation.Until(t.Context(), patience, func(ctx context.Context) error {
		for i := range rows {
			if legal := rows[i].Legal; legal != nil {
				if err := legal(ctx); err != nil {
					return fmt.Errorf("what is like %q: %w", rows[i].Name, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("honest people are refused when daemon and guard run again: %v", err)
	}
}
