// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/virtual-kubelet/virtual-kubelet/node/api/statsv1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// metered are pods that run, and what the metrics API tells of some of them, or that it tells nothing.
type metered struct {
	run, told []string
	cores     float64
	at        time.Time
	err       error
	// containers of each pod are told of; one, if there are none.
	containers []string
	// asked is how often that API was asked.
	asked int
}

func (m *metered) List(context.Context) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	for _, name := range m.run {
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}},
		})
	}
	waits := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "waits"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	return append(pods, waits), nil
}

func (m *metered) Stats(context.Context) (*statsv1alpha1.Summary, error) {
	m.asked++
	if m.err != nil {
		return nil, m.err
	}
	var summary statsv1alpha1.Summary
	for _, name := range m.told {
		pod := statsv1alpha1.PodStats{PodRef: statsv1alpha1.PodReference{Namespace: "shop", Name: name, UID: "uid-of-" + name}}
		containers := m.containers
		if len(containers) == 0 {
			containers = []string{"web"}
		}
		for _, container := range containers {
			pod.Containers = append(pod.Containers, statsv1alpha1.ContainerStats{
				Name:   container,
				CPU:    &statsv1alpha1.CPUStats{Time: metav1.NewTime(m.at), UsageNanoCores: new(uint64(int64(m.cores * 1e9)))},
				Memory: &statsv1alpha1.MemoryStats{Time: metav1.NewTime(m.at), WorkingSetBytes: new(uint64(4096))},
			})
		}
		summary.Pods = append(summary.Pods, pod)
	}
	return &summary, nil
}

// ofAgent is what Liqo's metric agent tells of pods at 1000 s.
func ofAgent(pods ...string) string {
	var text strings.Builder
	text.WriteString("# HELP container_cpu_usage_seconds_total [STABLE] Of a kubelet.\n# TYPE container_cpu_usage_seconds_total counter\n")
	for _, pod := range pods {
		fmt.Fprintf(&text, "container_cpu_usage_seconds_total{container=\"web\",namespace=\"shop\",pod=%q} 7 1000000\n", pod)
	}
	return text.String() + "# HELP node_cpu_usage_seconds_total [STABLE] Of the nodes.\n# TYPE node_cpu_usage_seconds_total counter\n" +
		"node_cpu_usage_seconds_total 9 1000000\n"
}

func TestComplete(t *testing.T) {
	added := func(pod string) []string {
		of := fmt.Sprintf("{container=\"web\",namespace=\"shop\",pod=%q} ", pod)
		return []string{cpuSeconds + of + "1e-06 1000000", memoryBytes + of + "4096 1000000", startSeconds + of + "999 1000000"}
	}
	down := errors.New("the server could not find the requested resource")
	cases := map[string]struct {
		reason string
		pods   metered
		told   string
		// has and hasNot are lines of the answer, which is what was told if there are none.
		has, hasNot []string
		asked       int
		// missing is whether it is said why nobody knows more, broken whether nothing is passed on, and once whether one container is told of.
		missing, broken, once bool
	}{
		"Provider": {reason: "the agent of a cluster that runs them itself knows all", pods: metered{run: []string{"a"}}, told: ofAgent("a")},
		"Broker": {
			reason: "the agent of a broker knows nothing of its providers", pods: metered{run: []string{"a"}, told: []string{"a"}},
			told: ofAgent(), has: append(added("a"), "node_cpu_usage_seconds_total 9 1000000"), asked: 1,
		},
		"Both": {
			reason: "who counts knows better than who has rates", pods: metered{run: []string{"a", "b"}, told: []string{"a", "b"}},
			told: ofAgent("a"), has: append(added("b"), cpuSeconds+`{container="web",namespace="shop",pod="a"} 7 1000000`),
			hasNot: added("a"), asked: 1,
		},
		"NoAgent": {reason: "a broker needs none", pods: metered{run: []string{"a"}, told: []string{"a"}}, has: added("a"), asked: 1},
		"NoMetricsAPI": {
			reason: "somebody is told of it", pods: metered{run: []string{"a"}, err: down}, told: ofAgent(), asked: 1, missing: true,
		},
		"TooEarly": {reason: "a pod that has just begun is not known yet", pods: metered{run: []string{"a"}}, told: ofAgent(), asked: 1},
		"NoPods":   {reason: "nobody is asked for nothing", told: ofAgent()},
		"NoText":   {reason: "what is not understood is not passed on", pods: metered{run: []string{"a"}}, told: "<html>", broken: true},
		"Other": {
			reason: "nobody says what a pod elsewhere uses", pods: metered{run: []string{"a"}}, told: ofAgent("a", "elsewhere"),
			has:    []string{cpuSeconds + `{container="web",namespace="shop",pod="a"} 7 1000000`, "node_cpu_usage_seconds_total 9 1000000"},
			hasNot: []string{cpuSeconds + `{container="web",namespace="shop",pod="elsewhere"} 7 1000000`},
		},
		"Long": {
			reason: "what is parsed has a bound", pods: metered{run: []string{"a"}}, told: "#" + strings.Repeat("x", maxTold) + "\n", broken: true,
		},
		"Lines": {
			reason: "a short line takes as much memory as a long one", pods: metered{run: []string{"a"}},
			told: strings.Repeat("a 1\n", maxLines+1), broken: true,
		},
		"Negative": {
			reason: "it is no huge number", pods: metered{run: []string{"a"}, told: []string{"a"}, cores: -1}, told: ofAgent(), asked: 1,
		},
		"NoContainer": {
			reason: "the pod has no other containers", told: ofAgent(), asked: 1,
			pods: metered{run: []string{"a"}, told: []string{"a"}, containers: []string{"db"}},
		},
		"Twice": {
			reason: "a text with the same twice is none", told: ofAgent(), asked: 1, has: added("a"), once: true,
			pods: metered{run: []string{"a"}, told: []string{"a"}, containers: []string{"web", "web"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.pods.at = time.Unix(1000, 0)
			whole, missing, err := newUsage(&tc.pods).complete(t.Context(), []byte(tc.told))
			if (missing != nil) != tc.missing || (err != nil) != tc.broken || tc.pods.asked != tc.asked {
				t.Fatalf("%s: asked %d times, want %d: %v, %v", tc.reason, tc.pods.asked, tc.asked, missing, err)
			}
			if tc.has == nil && err == nil && string(whole) != tc.told {
				t.Errorf("%s: got %s", tc.reason, whole)
			}
			lines := strings.Split(string(whole), "\n")
			for _, line := range tc.has {
				if !slices.Contains(lines, line) {
					t.Errorf("%s: there is no line %s in\n%s", tc.reason, line, whole)
				}
			}
			if tc.once && strings.Count(string(whole), "\n"+cpuSeconds+"{") != 1 {
				t.Errorf("%s: got\n%s", tc.reason, whole)
			}
			for _, line := range tc.hasNot {
				if slices.Contains(lines, line) {
					t.Errorf("%s: there is a line %s", tc.reason, line)
				}
			}
			if types := strings.Count(string(whole), "# TYPE "+cpuSeconds); tc.has != nil && types != 1 {
				t.Errorf("%s: the type is told %d times", tc.reason, types)
			}
		})
	}
}

// TestCount has a container use more and less, and looks at what somebody who scrapes sees of it.
func TestCount(t *testing.T) {
	pods := &metered{run: []string{"a"}, told: []string{"a"}}
	used := newUsage(pods)
	steps := []struct {
		reason string
		at     int64
		cores  float64
		gone   bool
		want   string
	}{
		{"it begins with next to nothing", 1000, 2, false, "1e-06 1000000"},
		{"two cores for 15 s are 30 s", 1015, 2, false, "30.000001 1015000"},
		{"a quarter of one for 16 s are 4 s", 1031, .25, false, "34.000001 1031000"},
		{"who asks twice at once sees the same", 1031, 8, false, "34.000001 1031000"},
		{"an answer that was overtaken takes nothing back", 1020, 8, false, "34.000001 1020000"},
		{"what is gone is not counted", 1046, 8, true, ""},
		{"what comes again begins again", 1061, 8, false, "1e-06 1061000"},
	}
	for _, step := range steps {
		pods.at, pods.cores, pods.told = time.Unix(step.at, 0), step.cores, []string{"a"}
		if step.gone {
			pods.told = []string{"another"}
		}
		whole, _, err := used.complete(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for line := range strings.Lines(string(whole)) {
			if rest, found := strings.CutPrefix(line, cpuSeconds+`{container="web",namespace="shop",pod="a"} `); found {
				got = strings.TrimSpace(rest)
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
	}
}

func TestScrape(t *testing.T) {
	cases := map[string]struct {
		reason, path string
		pods         metered
		// agent is what the metric agent answers; there is none if it is empty.
		agent string
		code  int
		has   string
		// hasNot is not in the answer, if it is not empty.
		hasNot string
	}{
		"Whole": {
			"what the agent leaves out is added", usagePath, metered{run: []string{"a"}, told: []string{"a"}}, ofAgent(), 200, startSeconds, "",
		},
		"NoAgent": {"the metrics API is enough", usagePath, metered{run: []string{"a"}, told: []string{"a"}}, "", 200, startSeconds, ""},
		"OnlyAgent": {
			"it is enough", usagePath, metered{run: []string{"a", "b"}, err: errors.New("none")}, ofAgent("b"), 200, `pod="b"`, "",
		},
		"Neither": {
			"it is said what is missing", usagePath, metered{run: []string{"a"}, err: errors.New("not there")}, "", 502, "not there", "",
		},
		"NoPods": {"an agent that does not answer is not silently nothing", usagePath, metered{}, "", 502, "returned no metrics", ""},
		"Unread": {"what nobody understands nobody is told", usagePath, metered{run: []string{"a"}}, "<html>", 502, "read the metrics", ""},
		"Containers": {
			"others are the agent's", "/metrics/cadvisor", metered{run: []string{"a"}, told: []string{"a"}}, "up 1\n", 200, "up 1", startSeconds,
		},
		"ContainersElsewhere": {
			"nobody says what a pod elsewhere does", "/metrics/cadvisor", metered{run: []string{"a"}}, ofAgent("a", "elsewhere"), 200,
			`pod="a"`, "elsewhere",
		},
		"ProbesElsewhere": {
			"nor how it is", "/metrics/probes", metered{run: []string{"a"}}, ofAgent("a", "elsewhere"), 200, `pod="a"`, "elsewhere",
		},
		"KubeletElsewhere": {
			"nor where it is", "/metrics", metered{run: []string{"a"}}, ofAgent("elsewhere"), 200, "node_cpu_usage_seconds_total 9", "elsewhere",
		},
		"ContainersUnread": {
			"what nobody understands nobody is told", "/metrics/cadvisor", metered{run: []string{"a"}}, "<html>", 502, "read the metrics", "html>",
		},
		"ContainersLines": {
			"what is parsed has a bound", "/metrics/cadvisor", metered{}, strings.Repeat("a 1\n", maxLines+1), 502, "and may have", "a 1",
		},
		"ContainersNone": {
			"there is nothing of them", "/metrics/cadvisor", metered{run: []string{"a"}, told: []string{"a"}}, "", 502, "returned no", "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tc.agent == "" || r.URL.Path != scrapePath+"/home"+tc.path {
					http.NotFound(w, r)
					return
				}
				fmt.Fprint(w, tc.agent)
			}))
			defer agent.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: agent.URL})
			if err != nil {
				t.Fatal(err)
			}
			recorder := httptest.NewRecorder()
			scrape(client.RESTClient(), "home", newUsage(&tc.pods)).ServeHTTP(recorder,
				httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, http.NoBody))
			if recorder.Code != tc.code || !strings.Contains(recorder.Body.String(), tc.has) {
				t.Errorf("%s: %d, want %d and %q in\n%s", tc.reason, recorder.Code, tc.code, tc.has, recorder.Body)
			}
			if tc.hasNot != "" && strings.Contains(recorder.Body.String(), tc.hasNot) {
				t.Errorf("%s: there is %q in\n%s", tc.reason, tc.hasNot, recorder.Body)
			}
			if tc.path != usagePath && tc.pods.asked > 0 {
				t.Errorf("%s: the metrics API is asked", tc.reason)
			}
		})
	}
}
