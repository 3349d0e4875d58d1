// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

const (
	faultNamespace = "faults"
	faultReplicas  = 6

	// healPatience is how long everything may take to be as before, from the end of a fault. A gateway of Liqo 0.9 that begins again and loses
	// its lease, because the processors are busy, waits longer each time before it begins again. With Liqo 1.x the end of a tunnel that was
	// called begins it again, 15 s after it has heard nothing, and then every 5 s; the other one does not know any more where that is.
	healPatience = 3 * time.Minute
	// quiet is the longest time without an answer on a path that a fault spares: less than a fault lasts, and else as much as can be. Requests
	// are 200 ms apart, and two cores that run four clusters and a build were seen to be 1.5 s late by themselves.
	quiet = 4 * time.Second
	// lostAfter is after how long at most Liqo gives a tunnel up that answers no more.
	lostAfter = 30 * time.Second
)

// A fault is a part of the federation that is taken away for some time.
type fault struct {
	name string
	// Either a process is killed, in all of its pods, or begin does something else.
	kills *federation.Process
	begin func(context.Context) (end func() error, err error)

	// Which paths the fault interrupts. It spares the others, without a gap.
	interrupts []federation.Path
	// relays says that pods which are reached directly can be reached by relay meanwhile.
	relays bool
	// unseen says that, if it lasts, Kubernetes does not hear of the pods on provider-a, and calls them not ready; with Liqo 1.x of all pods.
	unseen bool
	// at is the provider whose pods alone are interrupted or unseen, with Liqo 1.x; nil for those of both.
	at *federation.Cluster
	// works fails until what was away does its work again, where pods do not show that; nil if they do. The fault ended at a time.
	works func(ctx context.Context, ended time.Time) error
}

// faults are all that the matrix has, in the order in which it is printed.
func faults() []fault {
	if direct() {
		return faultsPast()
	}
	return faultsRelayed()
}

// noFault is what the machine itself does to the KPIs.
func noFault(context.Context) (end func() error, err error) { return func() error { return nil }, nil }

func cut(a, b *federation.Cluster) func(context.Context) (func() error, error) {
	return func(ctx context.Context) (func() error, error) { return fed.Cut(ctx, a, b) }
}

// faultsPast are those where provider-a is reached past the broker.
func faultsPast() []fault {
	past, relay := []federation.Path{federation.PathDirect}, []federation.Path{federation.PathRelay}
	return []fault{
		{name: "Nothing", begin: noFault},
		{name: "BrokerDaemon", kills: new(fed.Daemon())},
		{name: "RemoteIPAM", kills: new(fed.RemoteIPAM())},
		{name: "NetworkManager", kills: new(fed.NetworkManager())},
		{name: "VirtualKubeletOfConsumer", kills: new(fed.VirtualKubelet(fed.Consumer, fed.Broker)), unseen: true},
		{name: "VirtualKubeletOfBroker", kills: new(fed.VirtualKubelet(fed.Broker, fed.ProviderA))},
		{name: "GatewayOfBroker", kills: new(fed.Gateway(fed.Broker, fed.Consumer)), interrupts: relay},
		{name: "GatewayOfProvider", kills: new(fed.Gateway(fed.ProviderA, fed.Broker)), interrupts: past, unseen: true},
		{name: "LinkConsumerBroker", begin: cut(fed.Consumer, fed.Broker), interrupts: relay},
		{name: "LinkBrokerProvider", begin: cut(fed.Broker, fed.ProviderA)},
		{name: "LinkConsumerProvider", begin: cut(fed.Consumer, fed.ProviderA), interrupts: past, relays: true},
	}
}

// faultsRelayed are those where all pods are reached through the broker. A tunnel has a gateway of its own at each end, and that
// of the cluster that provides is called by the other one. A virtual kubelet is Liqo's, and knows of pods what the cluster behind it shows.
func faultsRelayed() []fault {
	relay, a := []federation.Path{federation.PathRelay}, fed.ProviderA
	return []fault{
		{name: "Nothing", begin: noFault},
		{name: "BrokerDaemon", kills: new(fed.Daemon())},
		{name: "Transit", kills: new(fed.Transit())},
		{name: "Agent", kills: new(fed.Agent()), works: agentHeard},
		{name: "VirtualKubeletOfConsumer", kills: new(fed.VirtualKubelet(fed.Consumer, fed.Broker)), unseen: true},
		{name: "VirtualKubeletOfBroker", kills: new(fed.VirtualKubelet(fed.Broker, a)), unseen: true, at: a},
		{name: "GatewayOfBroker", kills: new(fed.Gateway(fed.Broker, fed.Consumer)), interrupts: relay},
		{name: "GatewayOfConsumer", kills: new(fed.Gateway(fed.Consumer, fed.Broker)), interrupts: relay},
		{name: "GatewayOfProvider", kills: new(fed.Gateway(a, fed.Broker)), interrupts: relay, at: a},
		{name: "GatewayToProvider", kills: new(fed.Gateway(fed.Broker, a)), interrupts: relay, at: a},
		{name: "ChecksOfBroker", kills: new(fed.GatewayChecks(fed.Broker, fed.Consumer)), unseen: true},
		{name: "LinkConsumerBroker", begin: cut(fed.Consumer, fed.Broker), interrupts: relay},
		{name: "LinkBrokerProvider", begin: cut(fed.Broker, a), interrupts: relay, at: a},
		{name: "LinkConsumerProvider", begin: cut(fed.Consumer, a)},
	}
}

// agentHeard fails until the broker has heard from the consumer's agent since a time.
func agentHeard(ctx context.Context, since time.Time) error {
	heard, err := fed.AgentHeard(ctx)
	if err == nil && heard.Before(since.Truncate(time.Second)) { // It is told in whole seconds.
		err = fmt.Errorf("the broker heard from the agent at %s last", timeOfDay(heard))
	}
	return err
}

// spares reports whether the fault leaves the path to a pod as it is.
func (f *fault) spares(pod *federation.Copy) bool {
	return !slices.Contains(f.interrupts, pod.Path) || f.at != nil && pod.RunsOn != f.at
}

// hides reports whether Kubernetes may call a pod not ready while the fault lasts.
func (f *fault) hides(pod *federation.Copy) bool {
	switch {
	case f.at != nil && pod.RunsOn != f.at:
		return false
	case direct() && pod.RunsOn != fed.ProviderA: // They are reached through the broker, which everything concerns.
		return true
	default:
		return f.unseen || !direct() && !f.spares(pod)
	}
}

// TestFaults takes one part of the federation away after the other, for 5 seconds or for as many as LIQO_BROKER_FAULT_SECONDS says,
// while a client in the consumer asks pods on provider-a, which it reaches directly, and pods on provider-b, which it reaches
// through the broker. Nobody else but the pod that was asked may ever answer, what is spared must not be interrupted, and all must
// be as before soon after, with the same pods: a policy keeps them where they are, and TestFailover looks at what it would do else.
//
// It prints what the client saw, and adds it to the Markdown file that LIQO_BROKER_FAULT_REPORT names. With Liqo 1.x nothing is reached
// directly: pods of both providers are asked through the broker.
func TestFaults(t *testing.T) {
	duration := secondsOf(t, "LIQO_BROKER_FAULT_SECONDS", 5*time.Second)
	start(t, v1alpha1.ModeOrchestrated)
	failover(t, v1alpha1.FailoverNever, 0) // The pods are to be the same in the end.
	deploy(t, faultNamespace, federation.Web, faultReplicas)
	report := &faultReport{title: titleOf(fed.Broker.Lab.LiqoVersion())}
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			before := bothPaths(t)
			checkAddresses(t, before)
			report.add(watchFault(t, f, before, duration))
		})
	}
	report.publish(t)
}

// secondsOf returns how many seconds an environment variable says, and otherwise the given time.
func secondsOf(t *testing.T, variable string, otherwise time.Duration) time.Duration {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return otherwise
	}
	seconds, err := strconv.Atoi(value)
	if err != nil || seconds <= 0 {
		t.Fatalf("%s is %q, not a number of seconds", variable, value)
	}
	return time.Duration(seconds) * time.Second
}

// bothPaths returns the pods once they are spread over both providers, and those on provider-a are reached directly, those on
// provider-b by relay.
func bothPaths(t *testing.T) []federation.Copy {
	t.Helper()
	var pods []federation.Copy
	eventually(t, healPatience, func(ctx context.Context) error {
		pods = copies(t, faultNamespace, faultReplicas, fed.ProviderA, fed.ProviderB)
		for _, pod := range pods {
			want := federation.PathRelay
			if direct() && pod.RunsOn == fed.ProviderA {
				want = federation.PathDirect
			}
			if pod.Path != want {
				return fmt.Errorf("pod %s on %s is reached by path %q, not %s", pod.Name, pod.RunsOn.Name, pod.Path, want)
			}
		}
		return nil
	})
	return pods
}

// watchFault lets a fault happen, checks what it does, and returns what was seen.
func watchFault(t *testing.T, f fault, before []federation.Copy, duration time.Duration) faultResult {
	t.Helper()
	watch := newFaultWatch(t, before)
	defer watch.prober.Stop()
	watch.works = f.works
	defer watch.tell(t)

	if f.kills != nil {
		killed, err := f.kills.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		watch.seen.note(time.Now(), "killed", killed)
		f.begin = f.kills.Kill
	}
	began := time.Now()
	end, err := f.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	watch.until(t, began.Add(duration))
	err = end()
	ended := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	watch.seen.note(ended, "fault", "ended")
	result := faultResult{fault: f.name, lasted: ended.Sub(began)}
	during := watch.prober.Answers(began, ended)
	result.healed = watch.untilHealed(t, before, ended)
	watch.prober.Stop()

	all := watch.prober.Answers(began, time.Now())
	result.direct, result.relay, result.moved, result.service = watch.sum(all)
	result.fewest, result.tunnelLost, result.relayed = watch.fewest, watch.lost.Sub(began), watch.relayed.Sub(watch.lost)
	watch.check(t, f, result, during)
	watch.checkSpared(t, f, before, all)
	return result
}

// A faultWatch looks at the consumer while something is missing.
type faultWatch struct {
	prober   *federation.Prober
	service  federation.Target
	pods     []federation.Copy            // As the consumer shows them.
	original map[federation.Target]bool   // What it showed before.
	changes  map[federation.Target]string // What it showed besides, by pod.
	fewest   int                          // Of the pods were ready at any time.
	unready  map[string]time.Time         // Since when a pod is shown as not ready.
	longest  map[string]time.Duration     // It was so, by pod.
	seen     chronicle
	works    func(ctx context.Context, ended time.Time) error

	// When the consumer's tunnel to provider-a was lost, when the pods there had relay addresses, when the tunnel was back, and when
	// the pods had direct addresses again.
	lost, relayed, found, redirected time.Time
}

func newFaultWatch(t *testing.T, before []federation.Copy) *faultWatch {
	t.Helper()
	prober, err := fed.NewProber(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &faultWatch{
		prober: prober, pods: clone(before), fewest: len(before),
		original: map[federation.Target]bool{}, changes: map[federation.Target]string{}, unready: map[string]time.Time{},
		longest: map[string]time.Duration{}, seen: chronicle{last: map[string]string{}},
	}
	w.service.Address, err = fed.Service(t.Context(), faultNamespace, federation.Web)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range before {
		w.original[target(pod)] = true
		prober.Add(target(pod))
	}
	prober.Add(w.service)
	return w
}

func clone(pods []federation.Copy) []federation.Copy {
	var cloned []federation.Copy
	for _, pod := range pods {
		pod.Address = maps.Clone(pod.Address)
		cloned = append(cloned, pod)
	}
	return cloned
}

func target(pod federation.Copy) federation.Target {
	return federation.Target{Pod: pod.Name, Address: pod.Address[fed.Consumer.Name] + ":8080", Path: pod.Path}
}

// until looks until a point in time.
func (w *faultWatch) until(t *testing.T, deadline time.Time) {
	t.Helper()
	for time.Now().Before(deadline) {
		if err := w.look(t.Context()); err != nil {
			t.Errorf("look at the consumer during the fault: %v", err)
			return
		}
		time.Sleep(min(500*time.Millisecond, time.Until(deadline)))
	}
}

// look notes what the consumer shows, and begins to ask at addresses that it did not show before.
func (w *faultWatch) look(ctx context.Context) error {
	connected, err := fed.Connected(ctx, fed.ProviderA)
	if err != nil {
		return err
	}
	if err := fed.LookAgain(ctx, faultNamespace, w.pods); err != nil {
		return err
	}
	at := time.Now()
	ready, onA, past, relayed := 0, 0, 0, 0
	for _, pod := range w.pods {
		if pod.Ready {
			ready++
			delete(w.unready, pod.Name)
		} else if since, known := w.unready[pod.Name]; known {
			w.longest[pod.Name] = max(w.longest[pod.Name], at.Sub(since))
		} else {
			w.unready[pod.Name] = at
		}
		w.seen.note(at, "pod "+pod.Name+" on "+pod.RunsOn.Name, fmt.Sprintf("ready %t, address %q by %q",
			pod.Ready, pod.Address[fed.Consumer.Name], pod.Path))
		if pod.RunsOn == fed.ProviderA {
			onA++
			past += map[federation.Path]int{federation.PathDirect: 1}[pod.Path]
			relayed += map[federation.Path]int{federation.PathRelay: 1}[pod.Path]
		}
		if now := target(pod); !w.original[now] {
			w.changes[now] = pod.Name
			if pod.Path != "" {
				w.prober.Add(now)
			}
		}
	}
	w.fewest = min(w.fewest, ready)
	once := func(when *time.Time, condition bool) {
		if when.IsZero() && condition {
			*when = at
		}
	}
	once(&w.lost, !connected)
	once(&w.relayed, relayed == onA)
	once(&w.found, connected && !w.lost.IsZero())
	once(&w.redirected, past == onA && !w.found.IsZero())
	w.seen.look(ctx, at)
	return nil
}

// untilHealed looks until all is as before, and returns how long that took from the end of the fault.
func (w *faultWatch) untilHealed(t *testing.T, before []federation.Copy, ended time.Time) time.Duration {
	t.Helper()
	err := federation.Until(t.Context(), healPatience, func(ctx context.Context) error {
		// In this order, what is noted last is at least as new as what is found healed.
		err := w.healed(ctx, before, ended)
		return errors.Join(err, w.look(ctx))
	})
	healed := time.Since(ended)
	if err != nil {
		t.Errorf("it does not heal: %v", err)
	}
	return healed
}

func (w *faultWatch) healed(ctx context.Context, before []federation.Copy, ended time.Time) error {
	var errs []error
	for _, c := range fed.Clusters() {
		errs = append(errs, c.NodesReady(ctx))
	}
	if w.works != nil {
		errs = append(errs, w.works(ctx, ended))
	}
	now, err := fed.Copies(ctx, faultNamespace)
	if err != nil {
		return err
	}
	if len(now) != len(before) {
		errs = append(errs, fmt.Errorf("there are %d pods, were %d", len(now), len(before)))
	}
	for i := range min(len(now), len(before)) {
		is, was := now[i], before[i]
		switch {
		case is.Name != was.Name || is.RunsOn != was.RunsOn || is.Address[was.RunsOn.Name] != was.Address[was.RunsOn.Name]:
			errs = append(errs, fmt.Errorf("pod %s on %s was replaced", was.Name, was.RunsOn.Name))
		case !is.Ready:
			errs = append(errs, fmt.Errorf("pod %s on %s is not ready", is.Name, is.RunsOn.Name))
		case target(is) != target(was):
			errs = append(errs, fmt.Errorf("pod %s on %s is shown as %v, was %v", is.Name, is.RunsOn.Name, target(is), target(was)))
		case w.prober.Last(target(was)).Before(ended):
			errs = append(errs, fmt.Errorf("pod %s on %s does not answer at %s", is.Name, is.RunsOn.Name, target(is).Address))
		}
	}
	return errors.Join(errs...)
}

// sum returns how the pods answered at the addresses that they had before, by path, at those that they got meanwhile, and behind
// their Service.
func (w *faultWatch) sum(answers map[federation.Target]federation.Answers) (direct, relay, moved, web federation.Answers) {
	for target, each := range answers {
		sum := &moved
		switch {
		case target == w.service:
			sum = &web
		case w.original[target] && target.Path == federation.PathDirect:
			sum = &direct
		case w.original[target]:
			sum = &relay
		}
		*sum = federation.Sum(*sum, each)
	}
	return direct, relay, moved, web
}

// check fails the test unless the fault did what it does and nothing else. during are the answers before it ended.
func (w *faultWatch) check(t *testing.T, f fault, result faultResult, during map[federation.Target]federation.Answers) {
	t.Helper()
	if wrong := result.direct.Wrong + result.relay.Wrong + result.moved.Wrong; wrong > 0 {
		t.Errorf("%d times another pod answered than the one that was asked", wrong)
	}
	interrupted := map[federation.Path]bool{}
	for _, path := range f.interrupts {
		interrupted[path] = true
	}
	for path, seen := range map[federation.Path]federation.Answers{federation.PathDirect: result.direct, federation.PathRelay: result.relay} {
		switch least := result.lasted - quiet; {
		case path == federation.PathDirect && !direct():
		case seen.Requests == 0:
			t.Errorf("no request took the path %s", path)
		case interrupted[path] && seen.Gap < least:
			t.Errorf("there was an answer at least every %s on the path %s, which this fault interrupts for %s", seen.Gap, path, result.lasted)
		}
	}
	if !interrupted[federation.PathDirect] {
		for target, pod := range w.changes {
			t.Errorf("pod %s was shown with the address %q meanwhile", pod, target.Address)
		}
		return
	}
	w.checkMoves(t, f, result, during)
}

// checkSpared checks that nothing happened to the pods that the fault spares. all are the answers from its beginning on.
func (w *faultWatch) checkSpared(t *testing.T, f fault, before []federation.Copy, all map[federation.Target]federation.Answers) {
	t.Helper()
	for i := range before {
		pod := &before[i]
		if answers := all[target(*pod)]; f.spares(pod) && answers.Gap > quiet {
			t.Errorf("pod %s on %s did not answer for %s from %s on the path %s, which this fault spares", pod.Name, pod.RunsOn.Name,
				answers.Gap, timeOfDay(answers.GapFrom), pod.Path)
		}
		// Kubernetes on the broker calls a pod not ready a moment before Liqo says why.
		if longest := w.longest[pod.Name]; longest > quiet && !f.hides(pod) {
			t.Errorf("pod %s on %s, which is reached by the path %s, was shown as not ready for %s", pod.Name, pod.RunsOn.Name, pod.Path, longest)
		}
	}
}

// checkMoves checks that the addresses of the pods on provider-a follow the consumer's tunnel to it.
func (w *faultWatch) checkMoves(t *testing.T, f fault, result faultResult, during map[federation.Target]federation.Answers) {
	t.Helper()
	if w.lost.IsZero() {
		if result.lasted > lostAfter {
			t.Errorf("the tunnel to provider-a was up all the time")
		}
		return
	}
	if f.relays {
		if w.relayed.IsZero() {
			t.Errorf("the tunnel was lost at %s and the pods had no relay addresses until the end", timeOfDay(w.lost))
		}
		for target, answers := range during {
			if !w.original[target] && target != w.service && answers.Requests == answers.Errors {
				t.Errorf("pod %s did not answer at the address %s that it got meanwhile", target.Pod, target.Address)
			}
		}
	}
	if w.redirected.IsZero() {
		t.Errorf("the tunnel was back at %s and the pods had no direct addresses until the end", timeOfDay(w.found))
	}
}

func timeOfDay(at time.Time) string { return at.Format("15:04:05.0") }
