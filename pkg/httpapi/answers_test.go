// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/test/apiclient"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// TestAnswers compares the page with sample answers with what a broker answers that has a provider, and a consumer with a pod there.
func TestAnswers(t *testing.T) {
	provider := cluster.Identity{ID: "59bac5c0-5b6c-4b1a-9d3e-0d2f3f2d7a51", Name: "milan"}
	consumer := cluster.Identity{ID: "33aa2f60-2c43-4f0e-8f0a-6a1f5c8f4f0b", Name: "rome"}
	node := liqotest.VirtualNode(provider, true)
	rome := showntest.NewConsumer(consumer, v1alpha1.ModeOrchestrated)
	milan := showntest.NewProvider(provider)
	milan.Labels = map[string]string{"topology.kubernetes.io/region": "italy-north"}
	seen := kpi.History{}.Observe(showntest.Midnight, true).Observe(showntest.Midnight.Add(time.Minute), true)
	rome.Status.RoundTrips, rome.Status.NodeOffers = nil, nil
	rome.Status.Conditions[0].Message = "Offering 6 CPU from 1 provider"
	twin := liqotest.TwinNamespace("shop-rome-33aa2f", consumer)
	twin.Annotations["liqo.io/original-name"] = "shop"
	pod := liqotest.Pod(liqotest.ShadowPod(twin.Name, "web-0", nil), node.Name)
	pod.Status.PodIP = "10.71.0.14"
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}}}
	s := serve(t, nil, []client.Object{
		milan, &v1alpha1.ProviderHistory{ObjectMeta: metav1.ObjectMeta{Name: milan.Name}, History: seen.String()},
		rome, node, twin, pod, liqotest.ForeignCluster(provider, true, false),
		liqotest.ForeignCluster(consumer, false, true), liqotest.Tunnel(provider, "850μs", showntest.Midnight),
	}...)
	var out strings.Builder
	out.WriteString("# Sample answers of the HTTP API\n\n<!-- Written by make text. -->\n\n" +
		"What a broker with one provider and one consumer answers. [The API](../api.md) says who may ask, and " +
		"[openapi.yaml](../api/openapi.yaml)\nwhat each field is.\n")
	ofRome := "/api/v1/consumers/" + string(consumer.ID)
	for _, path := range []string{
		"/api/v1/providers/" + string(provider.ID), ofRome, ofRome + "/advice", "/api/v1/workloads", "/api/v1/links", "/api/v1/flows",
		"/api/v1/status", "/api/v1/me",
		"/api/v1/providers/nobody", "/api/v1/providers?limit=none",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer operator")
		answer, err := s.as(t, "", nil).ClientInterface.(*apiclient.Client).Client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		var indented bytes.Buffer
		if err != nil || json.Indent(&indented, bytes.TrimSpace(text), "", "  ") != nil {
			t.Fatalf("%s: %s (%v)", path, text, err)
		}
		fmt.Fprintf(&out, "\n## GET %s\n\n%s, `%s`:\n\n```json\n%s\n```\n", path, answer.Status, answer.Header.Get("Content-Type"),
			ofAnyRun.ReplaceAllString(indented.String(), `"2026-11-01T10:00:00Z"`))
	}
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "reference", "answers.md"), out.String())
}

// ofAnyRun are times, some of which are when the test runs.
var ofAnyRun = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[\d:.]+Z"`)
