// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offerlabels

import (
	"os"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// queued is what the example of Kueue may have of Kueue's objects (kueue/apis/kueue/v1beta2).
type queued struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Of a ResourceFlavor.
		NodeLabels map[string]string `json:"nodeLabels"`
		// Of a ClusterQueue.
		NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		ResourceGroups    []struct {
			CoveredResources []corev1.ResourceName `json:"coveredResources"`
			Flavors          []struct {
				Name      string `json:"name"`
				Resources []struct {
					Name         corev1.ResourceName `json:"name"`
					NominalQuota resource.Quantity   `json:"nominalQuota"`
				} `json:"resources"`
			} `json:"flavors"`
		} `json:"resourceGroups"`
		// Of a LocalQueue.
		ClusterQueue string `json:"clusterQueue"`
	} `json:"spec"`
}

// example reads a file of deploy/examples/kueue.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/examples/kueue/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKueue reads the example of queues by provider: its flavors are the labels that nodes of providers get, its objects name each other,
// and the Job waits in its queue.
func TestKueue(t *testing.T) {
	var flavors []string
	var queues, local []queued
	for document := range strings.SplitSeq(example(t, "queue.yaml"), "\n---\n") {
		var o queued
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if o.APIVersion != "kueue.x-k8s.io/v1beta2" {
			t.Errorf("%s %s is of %s", o.Kind, o.Name, o.APIVersion)
		}
		switch o.Kind {
		case "ResourceFlavor":
			flavors = append(flavors, o.Name)
			checkFlavor(t, o)
		case "ClusterQueue":
			queues = append(queues, o)
		case "LocalQueue":
			local = append(local, o)
		default:
			t.Errorf("it has a %s", o.Kind)
		}
	}
	if len(flavors) != 2 || len(queues) != 1 || len(local) != 1 || local[0].Spec.ClusterQueue != queues[0].Name {
		t.Fatalf("it has the flavors %v, the queues %v, and %v", flavors, queues, local)
	}
	// The queue has a quota of everything for each flavor.
	group, used := queues[0].Spec.ResourceGroups[0], []string{}
	for _, f := range group.Flavors {
		used = append(used, f.Name)
		var covered []corev1.ResourceName
		for _, r := range f.Resources {
			covered = append(covered, r.Name)
			if r.NominalQuota.Sign() <= 0 {
				t.Errorf("flavor %s has no %s", f.Name, r.Name)
			}
		}
		if !slices.Equal(covered, group.CoveredResources) {
			t.Errorf("flavor %s has quotas of %v, want %v", f.Name, covered, group.CoveredResources)
		}
	}
	if !slices.Equal(used, flavors) || queues[0].Spec.NamespaceSelector == nil {
		t.Errorf("the queue has the flavors %v, want %v, for %v", used, flavors, queues[0].Spec.NamespaceSelector)
	}
	// The Job requests what is covered.
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(example(t, "job.yaml")), &job); err != nil {
		t.Fatal(err)
	}
	if job.Labels["kueue.x-k8s.io/queue-name"] != local[0].Name || job.Namespace != local[0].Namespace || !*job.Spec.Suspend {
		t.Errorf("the Job %s/%s does not wait in queue %s/%s", job.Namespace, job.Name, local[0].Namespace, local[0].Name)
	}
	for name := range job.Spec.Template.Spec.Containers[0].Resources.Requests {
		if !slices.Contains(group.CoveredResources, name) {
			t.Errorf("the Job requests %s, of which there is no quota", name)
		}
	}
}

// checkFlavor fails the test unless the node of a provider gets the labels of a flavor.
func checkFlavor(t *testing.T, flavor queued) {
	t.Helper()
	for _, id := range flavor.Spec.NodeLabels {
		const own = cluster.ID("id-broker")
		of := cluster.Identity{ID: cluster.ID(id), Name: flavor.Name}
		provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: id}}
		c := snapshottest.NewClient(t, interceptor.Funcs{}, []client.Object{
			provider, liqotest.VirtualNode(of, true), liqotest.ForeignCluster(of, true, false), liqotest.Offer(of, nil),
		}...)
		labels, err := New(c.Scheme(), snapshottest.Reader(c, own), "liqo").labels(t.Context(), nodename.Name(own, of))
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range flavor.Spec.NodeLabels {
			if labels[key] != value {
				t.Errorf("flavor %s is of nodes with %s=%s, and the provider's node has %v", flavor.Name, key, value, labels)
			}
		}
	}
	if len(flavor.Spec.NodeLabels) != 1 {
		t.Errorf("flavor %s has the labels %v", flavor.Name, flavor.Spec.NodeLabels)
	}
}
