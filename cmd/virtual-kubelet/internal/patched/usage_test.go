// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

// told is what the foreign cluster tells of the pods of a namespace: nothing if there are none, but an error.
type told struct {
	metricsv1beta1.PodMetricsInterface
	pods []string
}

func (m told) List(context.Context, metav1.ListOptions) (*metrics.PodMetricsList, error) {
	if len(m.pods) == 0 {
		return nil, errors.New("no such namespace")
	}
	var list metrics.PodMetricsList
	for _, name := range m.pods {
		list.Items = append(list.Items, metrics.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Containers: []metrics.ContainerMetrics{{Name: "web", Usage: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Mi"),
			}}},
		})
	}
	return &list, nil
}

func TestUsageOfKnownPods(t *testing.T) {
	cases := map[string]struct {
		reason string
		// told are the pods of which the foreign cluster tells, by namespace here.
		told map[string][]string
		want []string
		fail bool
	}{
		"All": {"what the foreign cluster tells is passed on", map[string][]string{"home": {"a", "b"}}, []string{"home/a", "home/b"}, false},
		"Another": {
			"a pod of another virtual node is not known here", map[string][]string{"home": {"a", "other", "b"}}, []string{"home/a", "home/b"}, false,
		},
		"Removed": {
			"a namespace that goes does not take the others with it", map[string][]string{"home": {"a"}, "gone": nil}, []string{"home/a"}, false,
		},
		"Nothing": {"without an error, nobody uses anything", map[string][]string{"home": nil}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []runtime.Object
			for _, name := range []string{"a", "b"} {
				pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name}})
			}
			opts := namespacedOptions(t, pods...)
			local := ""
			reflector := startPodReflector(t, &changingIPAM{}, opts, func(string) metricsv1beta1.PodMetricsInterface {
				return told{pods: tc.told[local]}
			})
			for local = range tc.told {
				reflector.NewNamespaced(opts.WithLocal(local, opts.LocalClient, opts.LocalFactory))
			}
			opts.LocalFactory.Start(t.Context().Done())
			opts.LocalFactory.WaitForCacheSync(t.Context().Done())

			summary, err := reflector.Stats(t.Context())
			if (err != nil) != tc.fail {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			var got []string
			if summary != nil {
				for i := range summary.Pods {
					got = append(got, summary.Pods[i].PodRef.Namespace+"/"+summary.Pods[i].PodRef.Name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
