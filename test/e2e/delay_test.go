// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// loads is a query for a KPI of the providers.
const loads = `
apiVersion: brokering.liqo.io/v1alpha1
kind: ProviderQuery
metadata:
  name: load
spec:
  query: provider_load
  unit: ratio
  providerLabel: cluster
  interval: 5s
`

// delayed is a policy that takes a second provider while users wait for long. Its
// filter excludes no provider of which the KPI is known.
const delayed = `
apiVersion: brokering.liqo.io/v1alpha1
kind: PlacementPolicy
metadata:
  name: delayed
spec:
  appliesTo: {scope: Consumers, consumers: [%s]}
  filters: ['kpi.load < 1']
  weights:
    priceCPU: -10
  scaling:
    query: user_delay_milliseconds
    unit: ms
    consumerLabel: consumer
    offloadAbove: "200"
    unoffloadBelow: "100"
    window: 10s
    expiry: 20s
`

// TestDelay raises the delay of users, hides it, stops Prometheus, and lowers the delay.
func TestDelay(t *testing.T) {
	const namespace, replicas, window = "delay", 4, 10 * time.Second
	start(t, v1alpha1.ModeOrchestrated)
	price(t, fed.ProviderA, "0.02")
	price(t, fed.ProviderB, "0.03")
	m := monitor(t)
	m.report(150)
	stop := m.prometheus()
	askPrometheus(t, fmt.Sprintf("http://%s:%d", fed.Broker.Lab.Address, prometheusPort))
	apply(t, loads)
	loaded(t, fed.ProviderA)
	loaded(t, fed.ProviderB)
	apply(t, fmt.Sprintf(delayed, fed.Consumer.ID))
	kept(t, "Measured", fed.ProviderA)
	deploy(t, namespace, federation.Web, replicas)
	copies(t, namespace, replicas, fed.ProviderA)

	watch := watchReady(t, namespace)
	began := time.Now()
	m.report(300)
	kept(t, "Measured", fed.ProviderA, fed.ProviderB)
	if took := time.Since(began); took < window {
		t.Errorf("a second provider is used after %s, before the delay was high for %s", took, window)
	} else {
		t.Logf("a second provider was used after %.1f s", took.Seconds())
	}
	spread := func(want ...*federation.Cluster) {
		t.Helper()
		eventually(t, 2*time.Minute, func(ctx context.Context) error {
			found, err := fed.Copies(ctx, namespace)
			on := map[*federation.Cluster]int{}
			for _, pod := range found {
				if pod.Ready {
					on[pod.RunsOn]++
				}
			}
			for _, c := range want {
				if on[c] != replicas/len(want) {
					err = errors.Join(err, fmt.Errorf("%d pods are ready on %s, want %d", on[c], c.Name, replicas/len(want)))
				}
			}
			return err
		})
		t.Logf("the pods were there after %.1f s", time.Since(began).Seconds())
	}
	spread(fed.ProviderA, fed.ProviderB)
	if output, err := fed.Broker.Kubectl(t.Context(), "get", "events", "--field-selector=involvedObject.name=delayed"); err != nil {
		t.Error(err)
	} else if !strings.Contains(output, "ScaledUp") {
		t.Errorf("no event tells of the second provider:\n%s", output)
	}

	m.hide()
	kept(t, "NoData", fed.ProviderA, fed.ProviderB)
	holds(t, 3*window)
	m.report(0)
	stop()
	kept(t, "PrometheusUnavailable", fed.ProviderA, fed.ProviderB)
	holds(t, 3*window)

	began = time.Now()
	m.prometheus()
	kept(t, "Measured", fed.ProviderA)
	t.Logf("one provider was used after %.1f s", time.Since(began).Seconds())
	spread(fed.ProviderA)
	if least := watch.stop(); least < replicas-1 {
		t.Errorf("there was a moment in which only %d of %d replicas were ready", least, replicas)
	}
}

// loaded waits until the KPI of a provider is known that Prometheus was asked for.
func loaded(t *testing.T, provider *federation.Cluster) {
	t.Helper()
	eventually(t, time.Minute, func(ctx context.Context) error {
		var p v1alpha1.Provider
		if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
			return err
		}
		if q := p.Status.QueriedKPIs; len(q) != 1 || q[0].Name != "load" || q[0].Value != "0.5" || q[0].Unit != "ratio" {
			return fmt.Errorf("%s has the KPIs %+v of Prometheus", provider.Name, q)
		}
		return nil
	})
}

// kept waits until the policy has chosen these providers and no others, and says of its KPI what it should.
func kept(t *testing.T, reason string, providers ...*federation.Cluster) {
	t.Helper()
	eventually(t, 90*time.Second, func(ctx context.Context) error { return checkKept(ctx, reason, providers...) })
}

func checkKept(ctx context.Context, reason string, providers ...*federation.Cluster) error {
	status, decision, err := decided(ctx, "delayed")
	if err != nil {
		return err
	}
	got, measured := choiceIn(decision), meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionMeasured)
	if want := ids(providers); !slices.Equal(want, got) || measured == nil || measured.Reason != reason {
		return fmt.Errorf("chosen are %v, want %v; the KPI is %+v, want %s; decision %+v", got, want, measured, reason, decision.ConsumerDecision)
	}
	return nil
}

// holds watches for a while that both providers stay chosen.
func holds(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		_, d, err := decided(t.Context(), "delayed")
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Chosen) != 2 || d.Scaling.Count != 2 {
			t.Fatalf("without a KPI: %+v", d.ConsumerDecision)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(time.Second):
		}
	}
}

const prometheusPort, exporterPort = 9099, 9101

// monitoring is an exporter in the broker's node, and what a Prometheus beside it needs.
type monitoring struct {
	t      *testing.T
	folder string
}

// monitor starts an exporter, which lasts until the test ends.
func monitor(t *testing.T) *monitoring {
	t.Helper()
	m := &monitoring{t: t}
	m.folder = strings.TrimSpace(m.run("", "mktemp", "-d"))
	walk.AtEnd(t, func(ctx context.Context) error {
		return fed.Broker.Lab.Exec(ctx, node.Command{Args: []string{"rm", "-r", m.folder}, Stderr: os.Stderr})
	})
	m.run(fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: test, static_configs: [{targets: ['127.0.0.1:%d']}]}]\n",
		exporterPort),
		"tee", m.folder+"/prometheus.yml")
	m.background("busybox", "httpd", "-f", "-p", fmt.Sprintf("127.0.0.1:%d", exporterPort), "-h", m.folder)
	return m
}

// report makes the exporter show a delay, in ms.
func (m *monitoring) report(delay int) {
	m.t.Helper()
	metrics := fmt.Sprintf("user_delay_milliseconds{consumer=%q} %d\nprovider_load{cluster=%q} 0.5\nprovider_load{cluster=%q} 0.5\n",
		fed.Consumer.Name, delay, fed.ProviderA.Name, fed.ProviderB.Name)
	m.run(metrics, "tee", m.folder+"/next")
	m.run("", "mv", m.folder+"/next", m.folder+"/metrics")
}

// hide makes the exporter fail.
func (m *monitoring) hide() {
	m.t.Helper()
	m.run("", "rm", m.folder+"/metrics")
}

// prometheus starts Debian's Prometheus, and returns what ends it before the test does.
func (m *monitoring) prometheus() (stop func()) {
	m.t.Helper()
	return m.background("prometheus", "--config.file="+m.folder+"/prometheus.yml", "--storage.tsdb.path="+m.folder+"/data",
		fmt.Sprintf("--web.listen-address=:%d", prometheusPort), "--log.level=warn")
}

// run runs a program in the broker's node.
func (m *monitoring) run(stdin string, args ...string) string {
	m.t.Helper()
	var stdout strings.Builder
	command := node.Command{Args: args, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: os.Stderr}
	if err := fed.Broker.Lab.Exec(m.t.Context(), command); err != nil {
		m.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return stdout.String()
}

// background runs a program in the broker's node until the test ends, or what it returns is called.
func (m *monitoring) background(args ...string) (stop func()) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.t.Context()))
	done := make(chan error, 1)
	go func() { done <- fed.Broker.Lab.Exec(ctx, node.Command{Args: args, Stderr: os.Stderr}) }()
	stop = func() {
		if ctx.Err() == nil {
			cancel()
			<-done
		}
	}
	m.t.Cleanup(stop)
	return stop
}

// askPrometheus gives the broker's daemon the URL of a Prometheus until the test ends.
func askPrometheus(t *testing.T, url string) {
	t.Helper()
	walk.UntilEnd(t, func(ctx context.Context) (func() error, error) { return fed.RunDaemonWith(ctx, "--prometheus="+url) })
}
