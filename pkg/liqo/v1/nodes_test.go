// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// TestBrokerRecords finds the brokers among the peers, and nothing of a peer that is none, or of whom there is no record.
func TestBrokerRecords(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	record := func(name string, broker bool) client.Object {
		r := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.ForeignClusterSpec{ClusterID: name}}
		SayBroker(r, broker)
		return r
	}
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(record("a", true), record("b", false), record("c", true)).Build()
	if got, err := BrokerRecords(t.Context(), objects); err != nil || !slices.Equal(got, []client.ObjectKey{{Name: "a"}, {Name: "c"}}) {
		t.Errorf("BrokerRecords() = %v, %v", got, err)
	}
	for _, name := range []string{"b", "x"} {
		if got, err := BrokerNodesOf(t.Context(), objects, "home", name); got != nil || err != nil {
			t.Errorf("BrokerNodesOf(%s) = %v, %v", name, got, err)
		}
	}
}
