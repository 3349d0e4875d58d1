// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/hostile"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestTakenOver tries with the tokens of a buyer's connector, and of its seller's guard, what these must not be able to do. Each attempt is
// refused for the reason that it should be, and nothing comes of any. Without what refuses it, all that admission refuses succeeds, as a
// dry run; when the clusters are guarded again, as the pages say, it is refused again.
func TestTakenOver(t *testing.T) {
	_, answers := contracted(t)
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
		// byWebhook tells that webhooks refuse some of them. The guard tries to change these, and is refused it by policies alone.
		byWebhook bool
	}{
		"liqo-broker-connector": {fed.Consumer, "", (*hostile.Program).Connector, true},
		"liqo-broker-guard":     {fed.ProviderB, twinAt(t, fed.ProviderB, fed.Consumer), (*hostile.Program).Guard, false},
	} {
		t.Run(account, func(t *testing.T) {
			bait := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "hostile-bait"}}
			if err := client.IgnoreAlreadyExists(tc.at.Create(t.Context(), bait)); err != nil {
				t.Fatal(err)
			}
			walk.AtEnd(t, func(ctx context.Context) error { return tc.at.Delete(ctx, bait) })
			config, err := tc.at.Lab.RESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			token, err := tc.at.Token(t.Context(), account, account)
			if err != nil {
				t.Fatal(err)
			}
			program := &hostile.Program{
				Secret: bait.Name, Node: tc.at.Name, VirtualNode: virtual.Name, Twin: tc.twin, Peer: string(fed.ProviderA.ID),
			}
			if err := program.Connect(config, token); err != nil {
				t.Fatal(err)
			}
			attempts := tc.attempts(program)
			var refused []string
			for _, attempt := range attempts {
				if attempt.LiqoLets() {
					refused = append(refused, attempt.Name)
				}
			}
			can := func(want []string) func(context.Context) error {
				return func(ctx context.Context) error {
					could, err := hostile.TryAll(ctx, attempts, nil)
					if diff := cmp.Diff(want, could); diff != "" {
						err = errors.Join(err, fmt.Errorf("what %s can (-want +got):\n%s", account, diff))
					}
					return err
				}
			}
			if err := can(nil)(t.Context()); err != nil {
				t.Error(err)
			}

			webhooks := func() error { return nil }
			if tc.byWebhook {
				if webhooks, err = tc.at.WithoutWebhooks(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			guarded, policies := false, func() error { return nil }
			guard := func(ctx context.Context) {
				guarded = true
				if err := errors.Join(webhooks(), fed.Guard(ctx, tc.at, federation.NewProgress(t.Output())), policies()); err != nil {
					t.Error(err)
				}
			}
			t.Cleanup(func() {
				if !guarded {
					guard(context.WithoutCancel(t.Context()))
				}
			})
			end, err := tc.at.WithoutPolicies(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			policies = end
			eventually(t, time.Minute, can(refused)) // The API server needs a moment to ask nobody.
			guard(t.Context())
			eventually(t, time.Minute, can(nil))
		})
	}
	if err := answers(t.Context()); err != nil {
		t.Errorf("the workload has suffered: %v", err)
	}
}
