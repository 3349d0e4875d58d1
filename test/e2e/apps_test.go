// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// datagrams are Services of the workload Web: one for UDP, and one for both protocols on ports of the node.
const datagrams = `
apiVersion: v1
kind: Service
metadata: {name: udp, namespace: %[1]s}
spec:
  selector: {app: web}
  ports: [{name: udp, port: 53, targetPort: 8080, protocol: UDP}]
---
apiVersion: v1
kind: Service
metadata: {name: node, namespace: %[1]s}
spec:
  type: NodePort
  selector: {app: web}
  ports:
    - {name: tcp, port: 80, targetPort: 8080, protocol: TCP}
    - {name: udp, port: 80, targetPort: 8080, protocol: UDP}
`

// TestUDP sends datagrams to pods that the consumer reaches through the broker: to their addresses, to a Service, and to a port of the
// consumer's node from another cluster. That port is asked by TCP first, so that one sees which of the two does not work.
func TestUDP(t *testing.T) {
	const namespace, replicas = "udp", 2
	together(t, v1alpha1.ModeAggregated)
	deploy(t, namespace, federation.Web, replicas)
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(datagrams, namespace)); err != nil {
		t.Fatal(err)
	}
	pods := copies(t, namespace, replicas)
	checkAddresses(t, pods)
	names := map[string]bool{}
	for _, pod := range pods {
		names[pod.Name] = true
		eventually(t, time.Minute, func(ctx context.Context) error {
			host, err := fed.Consumer.HostByUDP(ctx, pod.Address[fed.Consumer.Name]+":8080")
			if err == nil && host != pod.Name {
				err = fmt.Errorf("at the address of pod %s, %q answers", pod.Name, host)
			}
			return err
		})
	}

	ofService := func(name string) *corev1.Service {
		t.Helper()
		var service corev1.Service
		if err := fed.Consumer.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &service); err != nil {
			t.Fatal(err)
		}
		return &service
	}
	onNode := func(port int) string {
		return fmt.Sprintf("%s:%d", fed.Consumer.Lab.Address, ofService("node").Spec.Ports[port].NodePort)
	}
	for _, tc := range []struct {
		name string
		ask  func(context.Context) (string, error)
	}{
		{"Service", func(ctx context.Context) (string, error) {
			return fed.Consumer.HostByUDP(ctx, ofService("udp").Spec.ClusterIP+":53")
		}},
		{"PortOfNodeByTCP", func(ctx context.Context) (string, error) {
			output, err := fed.Broker.Curl(ctx, "http://"+onNode(0)+"/")
			if err != nil {
				return "", err
			}
			var answer struct {
				Host string `json:"host"`
			}
			err = json.Unmarshal([]byte(output), &answer)
			return answer.Host, err
		}},
		{"PortOfNode", func(ctx context.Context) (string, error) { return fed.Broker.HostByUDP(ctx, onNode(1)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eventually(t, time.Minute, func(ctx context.Context) error {
				host, err := tc.ask(ctx)
				if err == nil && !names[host] {
					err = fmt.Errorf("%q answers, which is none of the pods %v", host, names)
				}
				return err
			})
		})
	}
}

// volume is a claim that a volume of the consumer's own node satisfies, and a pod that has it and is to run elsewhere.
const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  storageClassName: ""
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: %[1]s, name: data}
  hostPath: {path: /var/lib/%[1]s, type: DirectoryOrCreate}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: %[1]s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  resources: {requests: {storage: 1Mi}}
`

// TestVolumesStayAtHome has a pod with a volume of the consumer run elsewhere, where Liqo's storage is off: the claim is satisfied at home
// and is not at the broker, so that the pod waits there, and `explain` says for what.
func TestVolumesStayAtHome(t *testing.T) {
	const namespace, want = "volumes", `persistentvolumeclaim \"data\" not found` // As JSON has it.
	together(t, v1alpha1.ModeAggregated)
	// After the namespace.
	walk.KubectlAtEnd(t, fed.Consumer, "delete", "persistentvolume", namespace, "--ignore-not-found", "--wait=false")
	offloadCapacity(t, fed.Consumer, namespace)
	keeps := claimingPod(namespace, "brokering.liqo.io/give-back: Never")
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(volume, namespace)+"---"+keeps); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		var pod corev1.Pod
		if err := fed.Consumer.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "keeps"}, &pod); err != nil {
			return err
		}
		if pod.Spec.NodeName == "" {
			return fmt.Errorf("the pod waits at the consumer: %s", unscheduled(&pod))
		}
		return nil
	})
	eventually(t, time.Minute, func(context.Context) error {
		out, code := exitOf(t, fed.Broker, "explain", namespace+"/keeps", "--output=json")
		if code != 0 || !strings.Contains(out, want) {
			return fmt.Errorf("explain exits with %d, and does not say %q:\n%s", code, want, out)
		}
		return nil
	})
}

// manyNamespaces are offloaded in each of some rounds, with a pod each.
const manyNamespaces, manyRounds = 20, 3

// TestNamespacesLeaveNothing offloads many namespaces and removes them, again and again: after the last round the daemon has no more
// goroutines and our programs have not much more memory than after the first, when caches are filled, and the broker keeps no more relay
// addresses than before. One goroutine that stays for each namespace would be twice as many as are allowed. What virtual kubelets serve of
// themselves is off in the lab: of them, only the memory is looked at.
func TestNamespacesLeaveNothing(t *testing.T) {
	start(t, v1alpha1.ModeAggregated)
	token := metricsReader(t)
	var all strings.Builder
	var names []string
	for i := range manyNamespaces {
		name := fmt.Sprintf("many-%02d", i)
		names = append(names, name)
		all.WriteString("---\n" + offloadedTo(name, fed.Broker) + fmt.Sprintf(lonePod, name, "web", fed.Broker.ID))
	}
	remove := func(ctx context.Context) {
		t.Helper()
		_, err := fed.Consumer.Kubectl(ctx, append([]string{"delete", "namespace", "--ignore-not-found", "--wait=false"}, names...)...)
		if err != nil {
			t.Error(err)
		}
		// Kubernetes looks at one namespace after the other, on four clusters.
		err = federation.Until(ctx, 6*time.Minute, func(ctx context.Context) error { return fed.Removed(ctx, "many") })
		if err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { remove(context.WithoutCancel(t.Context())) })
	remove(t.Context())

	before := leftBy(t, token)
	t.Logf("before: %s", before)
	var first left
	for round := range manyRounds {
		began := time.Now()
		eventually(t, 2*time.Minute, func(ctx context.Context) error { return fed.Consumer.ApplyManifests(ctx, all.String()) })
		eventually(t, 5*time.Minute, manyReady)
		ready := time.Since(began)
		remove(t.Context())
		if t.Failed() {
			t.FailNow()
		}
		now := leftBy(t, token)
		t.Logf("round %d: ready after %.0f s, removed after %.0f s: %s", round+1, ready.Seconds(), time.Since(began).Seconds(), now)
		if round == 0 {
			first = now
			first.relays = before.relays // They are of pods that were there before.
		}
		if round < manyRounds-1 {
			continue
		}
		// Watches end and addresses are freed a while after their objects.
		eventually(t, 3*time.Minute, func(context.Context) error { return leftBy(t, token).noMoreThan(first) })
	}
}

// manyReady returns an error unless the pod of each of the many namespaces is ready.
func manyReady(ctx context.Context) error {
	var pods corev1.PodList
	if err := fed.Consumer.List(ctx, &pods); err != nil {
		return err
	}
	ready := 0
	waits := ""
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !strings.HasPrefix(pod.Namespace, "many-") {
			continue
		}
		if podstate.Ready(pod) {
			ready++
		} else {
			waits = fmt.Sprintf("; %s/%s is %s on node %q %s", pod.Namespace, pod.Name, pod.Status.Phase, pod.Spec.NodeName, unscheduled(pod))
		}
	}
	if ready < manyNamespaces {
		return fmt.Errorf("%d of %d pods are ready%s", ready, manyNamespaces, waits)
	}
	return nil
}

// left is what is left of what was removed, if anything is.
type left struct {
	goroutines, relays int
	memory             []federation.Resident
}

func (l left) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d goroutines, %d relay addresses", l.goroutines, l.relays)
	for _, r := range l.memory {
		fmt.Fprintf(&text, ", %s (%d) of %s %d MiB", r.Program, r.PID, r.Cluster, r.MiB)
	}
	return text.String()
}

// noMoreThan returns an error if more is left than earlier: a goroutine for each second namespace that came since, or half of a program's
// memory and 16 MiB, which is what the garbage collector lets it have meanwhile.
func (l left) noMoreThan(earlier left) error {
	var errs []error
	if more := l.goroutines - earlier.goroutines; more > manyNamespaces*(manyRounds-1)/2 {
		errs = append(errs, fmt.Errorf("the daemon has %d goroutines more", more))
	}
	if l.relays > earlier.relays {
		errs = append(errs, fmt.Errorf("the broker keeps %d relay addresses, and kept %d", l.relays, earlier.relays))
	}
	was := map[string]int{}
	key := func(r federation.Resident) string { return fmt.Sprintf("%s (%d) of %s", r.Program, r.PID, r.Cluster) }
	for _, r := range earlier.memory {
		was[key(r)] = r.MiB
	}
	for _, r := range l.memory {
		switch before, known := was[key(r)]; {
		case !known:
			errs = append(errs, fmt.Errorf("%s has started since, so that its memory says nothing", key(r)))
		case r.MiB > before*3/2+16:
			errs = append(errs, fmt.Errorf("%s has %d MiB, and had %d", key(r), r.MiB, before))
		}
	}
	return errors.Join(errs...)
}

// leftBy looks at what there is now.
func leftBy(t *testing.T, token string) left {
	t.Helper()
	var l left
	var err error
	if l.memory, err = fed.Residents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.relays, err = fed.Relays(t.Context()); err != nil {
		t.Fatal(err)
	}
	daemon, err := fed.Daemon().Pod(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := fed.Broker.Curl(t.Context(), "--insecure", "--fail", "--header", "Authorization: Bearer "+token,
		fmt.Sprintf("https://%s:8080/metrics", daemon.Status.PodIP))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(metrics, "\ngo_goroutines ")
	if _, err := fmt.Sscan(after, &l.goroutines); !found || err != nil {
		t.Fatalf("the daemon does not say how many goroutines it has: %v", err)
	}
	return l
}

// metricsReader returns a token of somebody who may read the daemon's metrics until the test ends.
func metricsReader(t *testing.T) string {
	t.Helper()
	const name = "e2e-metrics"
	for _, made := range [][]string{
		{"serviceaccount", name, "--namespace=default"},
		{"clusterrolebinding", name, "--clusterrole=liqo-broker-metrics-reader", "--serviceaccount=default:" + name},
	} {
		remove := func(ctx context.Context) error {
			_, err := fed.Broker.Kubectl(ctx, "delete", made[0], made[1], "--namespace=default", "--ignore-not-found")
			return err
		}
		walk.AtEnd(t, remove)
		if err := remove(t.Context()); err != nil { // What a run that was stopped left.
			t.Fatal(err)
		}
		if _, err := fed.Broker.Kubectl(t.Context(), append([]string{"create"}, made...)...); err != nil {
			t.Fatal(err)
		}
	}
	token, err := fed.Broker.Token(t.Context(), "default", name)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
