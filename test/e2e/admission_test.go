// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withPolicies reports whether the broker's API server has admission policies.
func withPolicies(t *testing.T) bool {
	t.Helper()
	resources, err := fed.Broker.Kubectl(t.Context(), "get", "--raw=/apis/admissionregistration.k8s.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(resources, "validatingadmissionpolicies")
}

// withoutWebhooks lets the broker's API server ask none of the webhooks of the daemon and of the guard, until the test ends or the returned
// function is called.
func withoutWebhooks(t *testing.T) (restore func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	saved := map[string]string{}
	restore = func() {
		for configuration, manifest := range saved {
			if err := createAs(t, manifest); err != nil {
				t.Errorf("restore the %s: %v", configuration, err)
			}
			delete(saved, configuration)
		}
	}
	t.Cleanup(restore)
	for _, of := range []string{"liqo-broker", "liqo-broker-guard"} {
		for _, kind := range []string{"mutatingwebhookconfiguration", "validatingwebhookconfiguration"} {
			output, err := fed.Broker.Kubectl(ctx, "get", kind, of, "--output=json")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fed.Broker.Kubectl(ctx, "delete", kind, of); err != nil {
				t.Fatal(err)
			}
			saved[kind+"/"+of] = stripped(t, output)
		}
	}
	return restore
}

// withoutAdmission lets neither webhooks nor the admission policies hold on the broker, until the test ends or the
// returned function is called.
func withoutAdmission(t *testing.T) (restore func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	restoreWebhooks := withoutWebhooks(t)
	if !withPolicies(t) {
		return restoreWebhooks
	}
	directory := filepath.Join("..", "..", "deploy", "admission")
	var once sync.Once
	restorePolicies := func() {
		once.Do(func() {
			if _, err := fed.Broker.Kubectl(ctx, "apply", "-k", directory); err != nil {
				t.Errorf("restore the admission policies: %v", err)
			}
		})
	}
	t.Cleanup(restorePolicies)
	if _, err := fed.Broker.Kubectl(ctx, "delete", "-k", directory); err != nil {
		t.Fatal(err)
	}
	return func() {
		restoreWebhooks()
		restorePolicies()
	}
}

// createAs makes an object on the broker, as who the options of kubectl say, or as the administrator.
func createAs(t *testing.T, manifest string, as ...string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.json")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := fed.Broker.Kubectl(context.WithoutCancel(t.Context()), append([]string{"create", "--filename=" + file}, as...)...)
	return err
}

// stripped returns a manifest without what the API server put in.
func stripped(t *testing.T, manifest string) string {
	t.Helper()
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	// With it kubectl would take what others wrote for its own, and the next apply would remove it.
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	clean, err := json.Marshal(&object)
	if err != nil {
		t.Fatal(err)
	}
	return string(clean)
}
