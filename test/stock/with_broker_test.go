// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

const (
	// twinPods is a Deployment of two pods that answer with their names.
	twinPods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: pair, namespace: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: pair}}
  template:
    metadata: {labels: {app: pair}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {liqo.io/type: virtual-node}
      containers:
        - name: web
          image: lab.local/web:1
          resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: away, namespace: %[1]s}
spec: {selector: {app: pair}, ports: [{port: 8080}]}
`
	// homely is a pod that the cluster runs itself, whatever is offloaded, with a Service.
	homely = `
apiVersion: v1
kind: Service
metadata: {name: home, namespace: %[1]s}
spec: {selector: {app: homely}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: homely, namespace: %[1]s, labels: {app: homely}}
spec:
  nodeName: %[2]s
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: "lab.local/web:1"}]
`
	// chosen is a pod that its cluster has run at one provider.
	chosen = `
apiVersion: v1
kind: Pod
metadata: {name: chosen, namespace: %[1]s}
spec:
  nodeSelector: {brokering.liqo.io/provider: %[2]s}
  terminationGracePeriodSeconds: 1
  containers:
    - name: web
      image: lab.local/web:1
      resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}}
`
)

// TestBroker makes a broker of the cluster in the middle and a consumer of the first one, by the commands that people read, after the
// clusters have used each other without. It is the last one, because gateways start again when the broker goes.
func TestBroker(t *testing.T) {
	apply(t, broker, fmt.Sprintf(homely, "default", broker.Name))
	own := awaitReady(t, broker, "default", "homely").address
	eventually(t, func(ctx context.Context) error { return reaches(ctx, consumer, own, "homely") }) // As Liqo comes, peers reach it.
	eventually(t, func(ctx context.Context) error { return knocks(ctx, consumer, virtualKubelet(t)) })
	apply(t, consumer, fmt.Sprintf(homely, "default", consumer.Name))
	target := awaitReady(t, consumer, "default", "homely").address
	trespass(t, target, func(seen string) {
		eventually(t, func(ctx context.Context) error { return reaches(ctx, provider, seen, "homely") })
	})

	for _, c := range []*lab.Cluster{broker, consumer} {
		load(t, c, "liqo-broker-network-manager")
	}
	load(t, broker, "liqo-broker")
	page := read(t, "docs/liqo-1.md", "TestBroker")
	said := page.next(t, "kubectl liqo-broker install --dry-run=server")
	// What Liqo has granted before, the broker takes over when people say so.
	takeOver := regexp.MustCompile(`kubectl (patch resourceslices\S* -n liqo-tenant-` + consumer.Name + ` .*)`).FindStringSubmatch(said)
	if takeOver == nil {
		t.Fatalf("install does not say how the broker takes over what Liqo has granted:\n%s", said)
	}
	kubectl(t, broker, strings.Fields(strings.ReplaceAll(takeOver[1], "'", ""))...)
	page.next(t, "kubectl liqo-broker prepare")
	eventually(t, granted)

	const namespace = "brokered"
	apply(t, consumer, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, namespace))
	apply(t, consumer, offloading(namespace, "DefaultName", "LocalAndRemote", broker))
	apply(t, consumer, fmt.Sprintf(twinPods, namespace)+"---"+fmt.Sprintf(homely, namespace, consumer.Name))
	t.Run("addresses", func(t *testing.T) { checkAddresses(t, namespace) })
	t.Run("services", func(t *testing.T) { checkServices(t, namespace) })
	t.Run("overwritten", func(t *testing.T) { checkOverwritten(t, namespace) })
	t.Run("closed", func(t *testing.T) {
		for _, c := range []*lab.Cluster{consumer, provider} {
			if err := reaches(t.Context(), c, own, "homely"); err == nil {
				t.Errorf("%s reaches %s, a pod that the broker runs itself", c.Name, own)
			}
			if kubelet := virtualKubelet(t); knocks(t.Context(), c, kubelet) == nil {
				t.Errorf("%s reaches %s, a virtual kubelet of the broker", c.Name, kubelet)
			}
		}
	})
	t.Run("moved", func(t *testing.T) { checkMoved(t, namespace) })
	t.Run("chosen", func(t *testing.T) { checkChosen(t, namespace) })
	t.Run("hostile", func(t *testing.T) { checkHostile(t, namespace) })
	t.Run("faults", func(t *testing.T) { checkFaults(t, namespace) })

	// Everything can be undone.
	kubectl(t, consumer, "delete", "namespace", namespace, "--timeout=2m")
	t.Run("unknown", func(t *testing.T) { checkUnknown(t, target) })
	page.next(t, "kubectl liqo-broker unprepare")
	page.next(t, "kubectl liqo-broker uninstall --force")
	if len(page.Blocks) > 0 {
		t.Errorf("nobody does what %s says", page.Blocks[0])
	}
	eventually(t, func(ctx context.Context) error { return reaches(ctx, consumer, own, "homely") })
}

// trespass has the provider list behind the broker, where nobody told it to, the network of the consumer, and calls a function with the
// address under which it sees a pod of that one then.
func trespass(t *testing.T, target string, do func(seen string)) {
	t.Helper()
	const configurations = "configurations.networking.liqo.io"
	pods := func(ctx context.Context, c *lab.Cluster, peer, of string) (prefixes []string, err error) {
		out, err := c.Kubectl(ctx, "get", configurations, "-n", "liqo-tenant-"+peer, peer, "-o", "jsonpath={"+of+".remote.cidr.pod}")
		if err != nil {
			return nil, err
		}
		return prefixes, json.Unmarshal([]byte(out), &prefixes)
	}
	list := func(prefixes []string) error {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"remote": map[string]any{"cidr": map[string]any{"pod": prefixes}}}})
		if err != nil {
			return err
		}
		_, err = provider.Kubectl(t.Context(), "patch", configurations, "-n", "liqo-tenant-"+broker.Name, broker.Name, "--type=merge", "-p",
			string(patch))
		return err
	}
	there, err := pods(t.Context(), broker, consumer.Name, ".status")
	was, err2 := pods(t.Context(), provider, broker.Name, ".spec")
	if err := errors.Join(err, err2); err != nil || len(there) != 1 {
		t.Fatalf("the broker sees the consumer under %v: %v", there, err)
	}
	if err := list(append(slices.Clone(was), there...)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := list(was); err != nil {
			t.Error(err)
		}
	}()
	var seen string
	eventually(t, func(ctx context.Context) error {
		is, err := pods(ctx, provider, broker.Name, ".status")
		if err != nil {
			return err
		}
		if len(is) != len(was)+1 {
			return fmt.Errorf("the provider sees %v behind the broker, want %d prefixes", is, len(was)+1)
		}
		// All of these networks are of the same size.
		prefix, err := netip.ParsePrefix(is[len(was)])
		host := netip.MustParseAddr(target).As4()
		network := prefix.Addr().As4()
		if err == nil && prefix.Bits() != 16 {
			err = fmt.Errorf("the provider sees %s, want a /16", prefix)
		}
		seen = netip.AddrFrom4([4]byte{network[0], network[1], host[2], host[3]}).String()
		return err
	})
	do(seen)
}

// checkUnknown has the provider peer with the broker once more while no transit runs. It sends to a pod of the consumer, which it reached
// while the broker had Liqo alone: nothing arrives, neither before the transit runs nor when it does.
func checkUnknown(t *testing.T, target string) {
	t.Helper()
	l, err := federation.OpenLab()
	if err != nil {
		t.Fatal(err)
	}
	open := func(ctx context.Context) (string, error) {
		return broker.Kubectl(ctx, "get", "firewallconfigurations.networking.liqo.io", "-n", "liqo-broker-transit", "liqo-broker-transit", "-o",
			"jsonpath={.spec}")
	}
	before, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	peering := topology.Peering{Consumer: broker.Name, Provider: provider.Name}
	if err := l.Unpeer(t.Context(), peering); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		is, err := open(ctx)
		if err == nil && is == before {
			err = errors.New("gateways let pass what comes from a provider that is gone")
		}
		return err
	})
	kept := func(when string) {
		trespass(t, target, func(seen string) {
			for range 3 {
				if host, err := ask(t.Context(), provider, seen); err == nil {
					t.Errorf("%s the provider reaches %s, a pod of the consumer, at %s", when, host, seen)
				}
			}
		})
	}
	func() {
		defer stop(t, broker, "liqo-broker-transit", "liqo-broker-transit")()
		if err := l.Peer(t.Context(), peering); err != nil {
			t.Fatal(err)
		}
		kept("while no transit runs")
	}()
	kept("while the transit runs")
}

// reaches fails unless a pod answers at an address to one that a cluster runs itself.
func reaches(ctx context.Context, c *lab.Cluster, address, name string) error {
	host, err := ask(ctx, c, address)
	if err == nil && host != name {
		err = fmt.Errorf("%s is answered by %q on %s, want %s", address, host, c.Name, name)
	}
	return err
}

// granted fails unless the consumer was granted something by the broker.
func granted(ctx context.Context) error {
	out, err := broker.Kubectl(ctx, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-"+consumer.Name, "-l",
		"liqo.io/replicated=true", "-o", `jsonpath={range .items[*]}{.spec.class} {.status.conditions[?(@.type=="Resources")].reason}{end}`)
	if err == nil && out != "liqo-broker Granted" {
		err = fmt.Errorf("the consumer's ResourceSlice is %q, want it of class liqo-broker, and granted", out)
	}
	return err
}

// pair returns the pods of the Deployment that a cluster shows, by their names.
func pair(ctx context.Context, c *lab.Cluster, namespace string) (map[string]pod, error) {
	return lookAt(ctx, c, namespace, "-l", "app=pair")
}

// checkAddresses waits until the consumer reaches both pods by the addresses under which it shows them. What it shows before reaches them
// too, or nothing.
func checkAddresses(t *testing.T, namespace string) {
	t.Helper()
	checkReached(t, namespace, 2)
}

// checkReached does that with another number of pods, which the provider runs then.
func checkReached(t *testing.T, namespace string, replicas int) {
	t.Helper()
	checkReachedWithin(t, patience, namespace, replicas)
}

// checkReachedWithin waits for that as long as it is told.
func checkReachedWithin(t *testing.T, atMost time.Duration, namespace string, replicas int) {
	t.Helper()
	checkAnswersWithin(t, atMost, namespace, replicas)
	eventually(t, func(ctx context.Context) error {
		pods, err := pair(ctx, provider, namespace+"-"+consumer.Name+"-"+broker.Name)
		if err == nil && len(pods) != replicas {
			err = fmt.Errorf("the provider runs %v, want %d pods", pods, replicas)
		}
		return err
	})
}

// checkAnswers waits until the consumer reaches some pods by the addresses under which it shows them. At no moment it shows one that leads
// to another pod, or is granted what it has not acknowledged.
func checkAnswers(t *testing.T, namespace string, replicas int) {
	t.Helper()
	checkAnswersWithin(t, patience, namespace, replicas)
}

// checkAnswersWithin waits for that as long as it is told.
func checkAnswersWithin(t *testing.T, atMost time.Duration, namespace string, replicas int) {
	t.Helper()
	within(t, atMost, func(ctx context.Context) error {
		pods, err := pair(ctx, consumer, namespace)
		if err != nil {
			return err
		}
		reached := 0
		for name, p := range pods {
			if p.address == "" {
				continue
			}
			host, err := ask(ctx, consumer, p.address)
			if err == nil && host != name {
				t.Fatalf("the consumer shows %s with address %s, where %q answers", name, p.address, host)
			}
			if err == nil && p.ready == "True" {
				reached++
			}
		}
		wrong, err := unacknowledged(ctx)
		switch {
		case err != nil:
			return err
		case wrong != "":
			t.Fatal(wrong)
		case reached != replicas:
			return fmt.Errorf("the consumer reaches %d of its pods, want %d: %v", reached, replicas, pods)
		}
		return nil
	})
}

// checkServices has either end ask the Service whose pods are at the other one.
func checkServices(t *testing.T, namespace string) {
	t.Helper()
	for _, of := range []struct {
		by                    *lab.Cluster
		namespace, name, host string
	}{
		{consumer, namespace, "away", "pair-"},
		{provider, namespace + "-" + consumer.Name + "-" + broker.Name, "away", "pair-"},
		{provider, namespace + "-" + consumer.Name + "-" + broker.Name, "home", "homely"},
		{consumer, namespace, "home", "homely"},
	} {
		eventually(t, func(ctx context.Context) error {
			address, err := of.by.Kubectl(ctx, "get", "service", of.name, "-n", of.namespace, "-o", "jsonpath={.spec.clusterIP}")
			if err != nil {
				return err
			}
			host, err := ask(ctx, of.by, address)
			if err == nil && !strings.HasPrefix(host, of.host) {
				err = fmt.Errorf("%s of %s is answered by %q, want %s", of.name, of.by.Name, host, of.host)
			}
			return err
		})
	}
}

// checkOverwritten takes the views out of the list of networks, as liqoctl does when it is run again: they come back, and the pods are
// reached as before.
func checkOverwritten(t *testing.T, namespace string) {
	t.Helper()
	list := func(ctx context.Context) (string, error) {
		return consumer.Kubectl(ctx, "get", "configurations.networking.liqo.io", "-n", "liqo-tenant-"+broker.Name, broker.Name, "-o",
			"jsonpath={.spec.remote.cidr.pod}")
	}
	was, err := list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, _, more := strings.Cut(strings.Trim(was, "[]"), ",")
	if !more {
		t.Fatalf("the consumer lists %s behind the broker, want a view as well", was)
	}
	kubectl(t, consumer, "patch", "configurations.networking.liqo.io", "-n", "liqo-tenant-"+broker.Name, broker.Name, "--type=merge", "-p",
		fmt.Sprintf(`{"spec": {"remote": {"cidr": {"pod": [%s]}}}}`, first))
	eventually(t, func(ctx context.Context) error {
		is, err := list(ctx)
		if err == nil && is != was {
			err = fmt.Errorf("the consumer lists %s behind the broker, want %s", is, was)
		}
		return err
	})
	checkAddresses(t, namespace)
}

// checkMoved deletes a pod at the broker, as a drain does: there is another one, and the consumer's has not ended.
func checkMoved(t *testing.T, namespace string) {
	t.Helper()
	before, err := pair(t.Context(), consumer, namespace)
	if err != nil {
		t.Fatal(err)
	}
	twin := namespace + "-" + consumer.Name
	for name := range before {
		at, err := look(t.Context(), broker, twin, name)
		if err != nil {
			t.Fatal(err)
		}
		kubectl(t, broker, "delete", "pod", "-n", twin, name, "--wait=false")
		eventually(t, func(ctx context.Context) error {
			p, err := look(ctx, broker, twin, name)
			if err == nil && (p.uid == at.uid || p.ready != "True") {
				err = fmt.Errorf("the broker has %s as %+v, want another one than %s, ready", name, p, at.uid)
			}
			return err
		})
		// It is the same pod for the consumer, which hears a moment later that it runs again.
		eventually(t, func(ctx context.Context) error {
			p, err := look(ctx, consumer, namespace, name)
			if err == nil && (p.uid != before[name].uid || p.phase == "Succeeded" || p.phase == "Failed") {
				t.Fatalf("the consumer has %s as %+v, want %s to run on", name, p, before[name].uid)
			}
			if err == nil && p.phase != "Running" {
				err = fmt.Errorf("the consumer has %s as %+v, want it to run", name, p)
			}
			return err
		})
		break
	}
	checkAddresses(t, namespace)
}

// nodesOfProviders returns the nodes of single providers that the consumer has, each with whether it is ready, and fails unless as many
// ResourceSlices of its agent are there.
func nodesOfProviders(ctx context.Context) (string, error) {
	nodes, err := consumer.Kubectl(ctx, "get", "nodes", "-l", "brokering.liqo.io/provider", "-o",
		`jsonpath={range .items[*]}{.metadata.labels.brokering\.liqo\.io/provider} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
	if err != nil {
		return "", err
	}
	asked, err := consumer.Kubectl(ctx, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-"+broker.Name, "-l",
		"app.kubernetes.io/managed-by=liqo-broker", "-o", "name")
	if err == nil && len(strings.Fields(asked)) != len(strings.Fields(nodes))/2 {
		err = fmt.Errorf("the consumer asks for %q, and has nodes %q", asked, nodes)
	}
	return nodes, err
}

// checkChosen has the consumer have a node for each provider, choose one for a pod, and have one node for all of them again: the node goes
// when the pod is gone, and no pod of another node with it.
func checkChosen(t *testing.T, namespace string) {
	t.Helper()
	setNodes := func(nodes string) {
		t.Helper()
		kubectl(t, broker, "patch", "consumers.brokering.liqo.io", consumer.Name, "--type=merge", "-p",
			fmt.Sprintf(`{"spec": {"mode": "Orchestrated", "nodes": %q}}`, nodes))
	}
	awaitNodes := func(want string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			nodes, err := nodesOfProviders(ctx)
			if err == nil && nodes != want {
				err = fmt.Errorf("the consumer has nodes of single providers %q, want %q", nodes, want)
			}
			return err
		})
	}
	one := provider.Name + " True"
	setNodes("PerProvider")
	awaitNodes(one)
	apply(t, consumer, fmt.Sprintf(chosen, namespace, provider.Name))
	p := awaitReady(t, consumer, namespace, "chosen")
	eventually(t, func(ctx context.Context) error { return reaches(ctx, consumer, p.address, "chosen") })
	awaitReady(t, provider, namespace+"-"+consumer.Name+"-"+broker.Name, "chosen")

	setNodes("One")
	eventually(t, func(ctx context.Context) error {
		log, err := consumer.Kubectl(ctx, "logs", "-n", "liqo-broker-agent", "-l", "app.kubernetes.io/name=liqo-broker-agent", "--tail=-1")
		if err == nil && !strings.Contains(log, "it is kept for the pods that are there") {
			err = fmt.Errorf("the agent does not say that it keeps a node for its pods:\n%s", log)
		}
		return err
	})
	if err := reaches(t.Context(), consumer, p.address, "chosen"); err != nil {
		t.Errorf("the broker does not want the node any more, and its pod is gone: %v", err)
	}
	kubectl(t, consumer, "delete", "pod", "-n", namespace, "chosen", "--timeout=1m")
	awaitNodes("")
	checkAddresses(t, namespace)
}
