// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// What a pod of busy requests of a processor, and what it may use: it uses all of that.
const busyRequest, busyLimit = "50m", "200m"

// busy is a Deployment of one pod that uses a processor, and an autoscaler that makes a second one when the first uses more than it
// requests.
const busy = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy, namespace: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: tools
          image: lab.local/tools:1
          imagePullPolicy: IfNotPresent
          command: [sh, -c, "while :; do :; done"]
          resources: {requests: {cpu: %[2]s, memory: 16Mi}, limits: {cpu: %[3]s, memory: 64Mi}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy, namespace: %[1]s}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 1
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 100}}}]
`

// TestAutoscaling has an autoscaler of the consumer see what a pod uses that runs on a provider, through the broker: all three have a
// metrics-server.
func TestAutoscaling(t *testing.T) {
	needs(t, federation.Usage)
	const namespace = "autoscaling"
	start(t, v1alpha1.ModeAggregated)
	for _, c := range []*federation.Cluster{fed.ProviderA, fed.Broker, fed.Consumer} {
		walk.UntilEnd(t, func(ctx context.Context) (func() error, error) { return fed.MetricsServer(ctx, c) })
	}
	cordon(t, fed.ProviderB)
	offloadCapacity(t, fed.Consumer, namespace)
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(busy, namespace, busyRequest, busyLimit)); err != nil {
		t.Fatal(err)
	}
	copies(t, namespace, 1, fed.ProviderA)

	// Two scrapes of the provider are a rate, two of the broker are one of that, and so on.
	began := time.Now()
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		used, err := cpuOf(ctx, fed.Consumer, namespace)
		if err != nil {
			return err
		}
		least, most := resource.MustParse(busyRequest), resource.MustParse(busyLimit)
		most.Add(least) // The processor is shared out by tenths of a second.
		if used.Cmp(least) <= 0 || used.Cmp(most) > 0 {
			return fmt.Errorf("the consumer sees that the pod uses %s of a processor; it requests %s, and may use %s",
				used.String(), busyRequest, busyLimit)
		}
		t.Logf("after %.1f s, the consumer saw that the pod uses %s of a processor", time.Since(began).Seconds(), used.String())
		return nil
	})
	copies(t, namespace, 2, fed.ProviderA)
	t.Logf("a second pod ran on the provider after %.1f s", time.Since(began).Seconds())
}

// cpuOf returns what the only pod of a namespace of a cluster uses of a processor, as the metrics API there has it.
func cpuOf(ctx context.Context, c *federation.Cluster, namespace string) (*resource.Quantity, error) {
	text, err := c.Kubectl(ctx, "get", "--raw=/apis/metrics.k8s.io/v1beta1/namespaces/"+namespace+"/pods")
	if err != nil {
		return nil, err
	}
	var pods struct {
		Items []struct {
			Containers []struct {
				Usage struct {
					CPU resource.Quantity `json:"cpu"`
				} `json:"usage"`
			} `json:"containers"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(text), &pods); err != nil {
		return nil, err
	}
	if len(pods.Items) == 0 || len(pods.Items[0].Containers) == 0 {
		return nil, fmt.Errorf("the metrics API of %s has no pod of namespace %s: %s", c.Name, namespace, text)
	}
	return &pods.Items[0].Containers[0].Usage.CPU, nil
}
