// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering/outofband"
)

// TestTunnels writes where a tunnel leads if Liqo has lost it, and changes nothing else.
func TestTunnels(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		made   bool
		known  string
		want   string
	}{
		"Lost":    {reason: "Liqo has lost it", made: true, want: "key"},
		"Known":   {reason: "Liqo knows it", made: true, known: "another", want: "another"},
		"NotMade": {reason: "Liqo has not made the tunnel yet"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v09.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			tunnel := &v09.TunnelEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "peer"}}
			tunnel.Spec.BackendConfig = map[string]string{"publicKey": "key"}
			connection := &tunnel.Status.Connection
			if tc.made {
				connection.Status = "Connected"
			}
			if tc.known != "" {
				connection.PeerConfiguration = map[string]string{"publicKey": tc.known}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(tunnel).WithObjects(tunnel).Build()
			key := client.ObjectKeyFromObject(tunnel)
			if _, err := outofband.NewTunnels(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), key, tunnel); err != nil {
				t.Fatal(err)
			}
			if got := tunnel.Status.Connection.PeerConfiguration["publicKey"]; got != tc.want ||
				(tunnel.Status.Connection.Status == "Connected") != tc.made {
				t.Errorf("%s: %+v", tc.reason, tunnel.Status.Connection)
			}
		})
	}
}
