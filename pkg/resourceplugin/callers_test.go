// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceplugin

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestWatchCallers changes the pods of a cluster and looks who may ask the resource plugin.
func TestWatchCallers(t *testing.T) {
	pod := func(namespace, name, component, address string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
				"app.kubernetes.io/part-of": "liqo", "app.kubernetes.io/name": component,
			}},
			Status: corev1.PodStatus{PodIP: address},
		}
	}
	client := fake.NewSimpleClientset(
		pod("liqo", "gateway", "gateway", "10.0.0.1"),
		pod("liqo-of-a-consumer", "disguised", "controller-manager", "10.0.0.2"),
		pod("liqo", "manager", "controller-manager", "10.0.0.3"),
	)
	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(chan []netip.Addr, 16), make(chan error, 1)
	go func() {
		done <- WatchCallers(ctx, client, "liqo", func(addresses []netip.Addr) { told <- addresses })
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("WatchCallers(): %v", err)
		}
	}()
	expect := func(reason string, want ...string) {
		t.Helper()
		for deadline := time.After(patience); ; {
			select {
			case addresses := <-told:
				var got []string
				for _, address := range addresses {
					got = append(got, address.String())
				}
				slices.Sort(got)
				if fmt.Sprint(got) == fmt.Sprint(want) {
					return
				}
			case <-deadline:
				t.Fatalf("%s: was not told of %v", reason, want)
			}
		}
	}
	pods := client.CoreV1().Pods("liqo")
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("only the controller manager in the namespace of Liqo counts", "10.0.0.3")
	must(pods.Create(ctx, pod("liqo", "second", "controller-manager", ""), metav1.CreateOptions{}))
	expect("a pod without an address yet adds none", "10.0.0.3")
	must(pods.Update(ctx, pod("liqo", "second", "controller-manager", "10.0.0.4"), metav1.UpdateOptions{}))
	expect("it has got its address", "10.0.0.3", "10.0.0.4")
	ended := pod("liqo", "second", "controller-manager", "10.0.0.4")
	ended.Status.Phase = corev1.PodFailed
	must(pods.Update(ctx, ended, metav1.UpdateOptions{}))
	expect("it has ended: the address may be another pod's soon", "10.0.0.3")
	ending := pod("liqo", "manager", "controller-manager", "10.0.0.3")
	ending.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	must(pods.Update(ctx, ending, metav1.UpdateOptions{}))
	expect("it is about to end")
}
