// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// TestPublish compares what a catalog shows, field by field as it is written, of a foreign cluster with all that Liqo knows.
func TestPublish(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	module := func(condition api.ConditionType) api.Module {
		return api.Module{Enabled: true, Conditions: []api.Condition{{
			Type: condition, Status: api.StatusReady, Reason: "Why", Message: "quotes an error", LastTransitionTime: since,
		}}}
	}
	fc := &api.ForeignCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "1", CreationTimestamp: since, Annotations: map[string]string{"note": "x"},
			Labels: map[string]string{"liqo.io/remote-cluster-id": "a", "team": "x"},
		},
		Spec: api.ForeignClusterSpec{ClusterID: "a"},
		Status: api.ForeignClusterStatus{
			ObservedGeneration: 3, Role: api.RoleConsumerAndProvider, APIServerURL: "https://user:word@a.example:6443?token=x",
			ForeignProxyURL: "http://10.70.0.2:8118", TenantNamespace: api.TenantNamespaces{Local: "tenant-a", Remote: "tenant-own"},
			Conditions: []api.Condition{{Type: api.APIServerStatus, Status: api.StatusEstablished}},
			Modules: api.Modules{
				Networking: module(api.NetworkConnectionStatus), Authentication: module(api.AuthTenantStatus),
				Offloading: module("OffloadingNodeStatus"),
			},
		},
	}
	fc.Status.Modules.Authentication.Conditions = append(fc.Status.Modules.Authentication.Conditions,
		module(api.AuthIdentityControlPlaneStatus).Conditions...)
	fc.Status.Modules.Networking.Conditions = append(fc.Status.Modules.Networking.Conditions,
		module("NetworkGatewayServerStatus").Conditions...)
	condition := func(of string) string {
		return `{"type":"` + of + `","status":"Ready","reason":"Why","lastTransitionTime":"2026-11-01T00:00:00Z"}`
	}
	written := func(role, gateway, authentication string) string {
		return `{"kind":"ForeignCluster","apiVersion":"core.liqo.io/v1beta1","metadata":{"name":"a",` +
			`"labels":{"liqo.io/remote-cluster-id":"a"},"creationTimestamp":"2026-11-01T00:00:00Z"},"spec":{"clusterID":"a"},` +
			`"status":{"role":"` + role + `","apiServerUrl":"https://a.example:6443","modules":{` +
			`"networking":{"enabled":true,"conditions":[` + condition("NetworkConnectionStatus") + gateway + `]},` +
			`"authentication":{"enabled":true,"conditions":[` + authentication + condition("AuthIdentityControlPlaneStatus") + `]},` +
			`"offloading":{"enabled":true,"conditions":[` + condition("OffloadingNodeStatus") + `]}}}}`
	}
	public := Publish(fc)
	for name, tc := range map[string]struct {
		shown PublicForeignCluster
		want  string
	}{
		"Strangers see that it provides, and not that it consumes": {public.AsProvider(), written("Provider", "", "")},
		"Members see both": {
			public, written("ConsumerAndProvider", ","+condition("NetworkGatewayServerStatus"), condition("AuthTenantStatus")+","),
		},
	} {
		got, err := json.Marshal(tc.shown)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, string(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestStrangersSeeProviders checks whom strangers see: not who only consumes, nor of whom there is no more than a network.
func TestStrangersSeeProviders(t *testing.T) {
	var records []client.Object
	for _, role := range []api.Role{api.RoleProvider, api.RoleConsumer, api.RoleConsumerAndProvider, api.RoleUnknown, ""} {
		fc := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "of-" + strings.ToLower(string(role)) + "x"}}
		fc.Spec.ClusterID, fc.Status.Role = fc.Name, role
		fc.Status.Modules.Authentication.Conditions = []api.Condition{{Type: api.AuthIdentityControlPlaneStatus, Status: api.StatusReady}}
		records = append(records, fc)
	}
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	entries, err := Line{}.Reader(fake.NewClientBuilder().WithScheme(scheme).WithObjects(records...).Build(), "own").Catalog(t.Context())
	if err != nil || len(entries) != len(records) {
		t.Fatalf("Catalog(): %d entries, %v", len(entries), err)
	}
	var seen []string
	for _, e := range entries {
		if e.Provider != nil {
			seen = append(seen, e.Peer.Record)
		}
	}
	if diff := cmp.Diff([]string{"of-consumerandproviderx", "of-providerx"}, seen); diff != "" {
		t.Errorf("strangers see: -want +got\n%s", diff)
	}
}
