// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/hostile"
)

// TestTakenOver tries with the tokens of a buyer's connector, and of its seller's guard, what these must not be able to do. Each attempt is
// refused for the reason that it should be, and nothing comes of any.
func TestTakenOver(t *testing.T) {
	contracted(t)
	policies := schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}
	if _, err := fed.Consumer.RESTMapper().RESTMapping(policies, "v1"); meta.IsNoMatchError(err) {
		t.Skip("this Kubernetes has no admission policies")
	}
	virtual, err := fed.Consumer.VirtualNode(t.Context(), fed.ProviderB)
	if err != nil {
		t.Fatal(err)
	}
	for account, tc := range map[string]struct {
		at       *federation.Cluster
		twin     string
		attempts func(*hostile.Program) []hostile.Attempt
	}{
		"liqo-broker-connector": {fed.Consumer, "", (*hostile.Program).Connector},
		"liqo-broker-guard":     {fed.ProviderB, twinAt(t, fed.ProviderB, fed.Consumer, shared), (*hostile.Program).Guard},
	} {
		t.Run(account, func(t *testing.T) {
			bait := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "hostile-bait"}}
			if err := client.IgnoreAlreadyExists(tc.at.Create(t.Context(), bait)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := tc.at.Delete(context.WithoutCancel(t.Context()), bait); err != nil {
					t.Error(err)
				}
			})
			config, err := tc.at.Lab.RESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			token, err := tc.at.Token(t.Context(), account, account)
			if err != nil {
				t.Fatal(err)
			}
			program := &hostile.Program{Secret: bait.Name, Node: tc.at.Name, VirtualNode: virtual.Name, Twin: tc.twin, Peer: string(fed.ProviderA.ID)}
			if err := program.Connect(config, token); err != nil {
				t.Fatal(err)
			}
			for _, attempt := range tc.attempts(program) {
				if got := attempt.Try(t.Context()); got == nil || !strings.Contains(got.Error(), attempt.Got) {
					t.Errorf("%s could %s, which gives it %s: %v, want %q", account, attempt.Name, attempt.Gain, got, attempt.Got)
				}
			}
		})
	}
}
