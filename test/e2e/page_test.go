// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/webpage"
)

// TestPage has the plugin serve the page of the broker, and asks for what a browser asks: it shows the pods of the consumer as the
// federation has them, and what people change there is changed in the cluster and comes back by the stream.
func TestPage(t *testing.T) {
	const namespace = "page"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 2)
	pods := copies(t, namespace, 2)
	p := webpage.Open(t, servePage(t))

	// The page is there, and says who has opened it.
	if text := string(p.Text(http.MethodGet, "/", nil)); !strings.Contains(text, "<script") {
		t.Errorf("the page is\n%s", text)
	}
	me := webpage.Ask[apiv1.Me](p, http.MethodGet, "/api/v1/me", nil)
	if me.Broker == nil || me.Broker.ID != string(fed.Broker.ID) || me.Name == "" || len(me.May) == 0 {
		t.Errorf("it was opened by %+v", me)
	}

	// What it shows is what there is.
	events := p.Stream("providers,workloads,flows,links,status")
	shown := map[string]apiv1.Workload{}
	providers := map[string]bool{}
	webpage.Until(events, func(name string, e apiv1.Event) bool {
		switch {
		case e.Provider != nil:
			providers[e.Provider.ID] = e.Provider.Ready
		case e.Workload != nil && e.Workload.Namespace == namespace:
			shown[e.Workload.Pod] = *e.Workload
		}
		return name == "synced"
	})
	for _, provider := range fed.Providers() {
		if !providers[string(provider.ID)] {
			t.Errorf("provider %s is not shown as ready", provider.Name)
		}
	}
	for _, pod := range pods {
		if is := shown[pod.Name]; is.Provider == nil || is.Provider.ID != string(pod.RunsOn.ID) || !is.Ready || is.Path == "" {
			t.Errorf("pod %s on %s is shown as %+v", pod.Name, pod.RunsOn.Name, is)
		}
	}

	// What is tried changes nothing, and what is done does.
	scheduling := func() v1alpha1.Scheduling {
		t.Helper()
		var provider v1alpha1.Provider
		if err := fed.Broker.Get(t.Context(), client.ObjectKey{Name: string(fed.ProviderA.ID)}, &provider); err != nil {
			t.Fatal(err)
		}
		return provider.EffectiveScheduling()
	}
	path := "/api/v1/providers/" + string(fed.ProviderA.ID) + "/scheduling"
	p.Text(http.MethodPut, path+"?dryRun=All", map[string]string{"scheduling": "Cordoned"})
	if is := scheduling(); is != v1alpha1.SchedulingActive {
		t.Errorf("a dry run has made provider-a %s", is)
	}
	for _, wanted := range []v1alpha1.Scheduling{v1alpha1.SchedulingCordoned, v1alpha1.SchedulingActive} {
		p.Text(http.MethodPut, path, map[string]v1alpha1.Scheduling{"scheduling": wanted})
		if is := scheduling(); is != wanted {
			t.Errorf("provider-a is %s, and not %s", is, wanted)
		}
		webpage.Until(events, func(_ string, e apiv1.Event) bool {
			return e.Provider != nil && e.Provider.ID == string(fed.ProviderA.ID) && e.Provider.Scheduling == string(wanted)
		})
	}
}

// TestPageOfConsumer has the plugin serve the page of the consumer: it shows of its pods what the federation has, and what people are told
// by kubectl liqo-broker where.
func TestPageOfConsumer(t *testing.T) {
	const namespace = "own-page"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 3)
	pods := copies(t, namespace, 3)
	p := webpage.Open(t, webpage.Serve(t, fed.Consumer.Lab.KubeconfigPath()))
	me := webpage.Ask[apiv1.Me](p, http.MethodGet, "/api/v1/me", nil)
	if !me.Consumes || me.Broker != nil || me.Cluster == nil || me.Cluster.ID != string(fed.Consumer.ID) || len(me.May) != 0 {
		t.Errorf("it was opened by %+v", me)
	}

	// All that is shown until the end of the beginning: of other namespaces, too.
	shown, pathsOf := map[string]apiv1.Workload{}, map[string]int{}
	var status *apiv1.Status
	webpage.Until(p.Stream("workloads,flows,status"), func(name string, e apiv1.Event) bool {
		switch {
		case e.Workload != nil:
			pathsOf[e.Workload.Path]++
			if e.Workload.Namespace == namespace {
				shown[e.Workload.Pod] = *e.Workload
			}
		case e.Flow != nil:
			pathsOf[e.Flow.Path] -= e.Flow.Pods
		case e.Status != nil:
			status = e.Status
		}
		return name == "synced"
	})
	// Where traffic goes direct the consumer is peered with a provider too, whose node looks the same.
	isBroker := func(c apiv1.Cluster) bool { return c.ID == string(fed.Broker.ID) }
	if status == nil || !slices.ContainsFunc(status.Brokers, isBroker) || len(status.Brokers) > 1 && !direct() {
		t.Errorf("the status is %+v", status)
	}
	for path, more := range pathsOf {
		if more != 0 {
			t.Errorf("%d more pods are shown by path %q than are counted", more, path)
		}
	}

	// The federation has the same, and where says the same.
	if len(shown) != len(pods) {
		t.Errorf("%d pods are shown, want %d", len(shown), len(pods))
	}
	for _, pod := range pods {
		// Without direct paths a consumer is told no provider, but by nodes of single ones.
		is := shown[pod.Name]
		known := is.Provider == nil && !direct() || is.Provider != nil && is.Provider.ID == string(pod.RunsOn.ID)
		if !known || is.Path != string(pod.Path) ||
			is.Address != pod.Address[fed.Consumer.Name] || !is.Ready || is.Broker == nil || is.Broker.ID != string(fed.Broker.ID) ||
			is.Since.IsZero() {
			t.Errorf("pod %s on %s, by %s, is shown as %+v", pod.Name, pod.RunsOn.Name, pod.Path, is)
		}
	}
	var told []overview.Placed
	said, err := pluginCommand(t.Context(), fed.Consumer, "where", namespace, "-o", "json").Output()
	if err := errors.Join(err, json.Unmarshal(said, &told)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range told {
		is := shown[pod.Pod]
		same := (pod.Provider == nil) == (is.Provider == nil) && (pod.Provider == nil || is.Provider.ID == pod.Provider.ID)
		if !same || is.Path != pod.Path || is.Node != pod.Node || is.Address != pod.Address || !is.Since.Equal(pod.Since.Time) {
			t.Errorf("where says of pod %s %+v, and the page %+v", pod.Pod, pod, is)
		}
	}
}
