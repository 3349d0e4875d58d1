// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/events"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/transit"
)

func TestQuietInTransit(t *testing.T) {
	from := func(origin string) map[string]string {
		if origin == "" {
			return nil
		}
		return map[string]string{forge.LiqoOriginClusterIDKey: origin}
	}
	cases := map[string]struct {
		reason, origin, eventType, event string
		told                             bool
	}{
		"OwnSuccess":       {"Whose pod it is reads it.", "", corev1.EventTypeNormal, forge.EventSuccessfulReflection, true},
		"TransitSuccess":   {"On the way nobody does.", "consumer", corev1.EventTypeNormal, forge.EventSuccessfulReflection, false},
		"TransitTokens":    {"Nor that of tokens.", "consumer", corev1.EventTypeNormal, forge.EventSuccessfulSATokensReflection, false},
		"TransitFailure":   {"What goes wrong here is for people here.", "consumer", corev1.EventTypeWarning, forge.EventFailedReflection, true},
		"TransitAPIServer": {"And for the consumer.", "consumer", corev1.EventTypeWarning, transit.ReasonNoAPIServer, true},
		"TransitDisabled":  {"What is not reflected is told.", "consumer", corev1.EventTypeNormal, forge.EventReflectionDisabled, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			broadcaster := record.NewBroadcaster()
			defer broadcaster.Shutdown()
			reasons := toldReasons(broadcaster)
			recorder := events.QuietInTransit(broadcaster).NewRecorder(scheme.Scheme, corev1.EventSource{Component: "liqo-pod-reflection"})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web", Labels: from(tc.origin)}}
			recorder.Event(pod, tc.eventType, tc.event, "a message")
			recorder.Event(pod, corev1.EventTypeWarning, "Last", "a message")
			reflectiontest.Eventually(t, func() bool { return slices.Contains(reasons(), "Last") })
			if told := slices.Contains(reasons(), tc.event); told != tc.told {
				t.Errorf("%s: told: %t", tc.reason, told)
			}
		})
	}
}

// toldReasons returns the reasons of the events that are broadcast.
func toldReasons(broadcaster record.EventBroadcaster) func() []string {
	var mu sync.Mutex
	var reasons []string
	broadcaster.StartEventWatcher(func(event *corev1.Event) {
		mu.Lock()
		defer mu.Unlock()
		reasons = append(reasons, event.Reason)
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(reasons)
	}
}

// TestLiqoIsQuietInTransit reflects a pod with Liqo's own reflector, which tells of it.
func TestLiqoIsQuietInTransit(t *testing.T) {
	reflectiontest.BeBroker()
	for origin, told := range map[string]bool{"": true, "consumer": false} {
		pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, nil,
			&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportDisabled}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
		pod := reflectiontest.PodOf(origin, func(*corev1.Pod) {})
		c := reflectiontest.Start(t, transit.NewPods(reflectiontest.Unstarted(pods), nil), pods.NewNamespaced, pod)
		reasons := toldReasons(c.Events)
		if err := c.Handle(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Events.NewRecorder(scheme.Scheme, corev1.EventSource{}).Event(pod, corev1.EventTypeNormal, "Last", "a message")
		reflectiontest.Eventually(t, func() bool { return slices.Contains(reasons(), "Last") })
		if got := slices.Contains(reasons(), forge.EventSuccessfulReflection); got != told {
			t.Errorf("a pod of %q: told: %t", origin, got)
		}
	}
}
