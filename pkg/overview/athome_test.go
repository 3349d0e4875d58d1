// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// TestAtHome looks for pods that were made before Liqo had labelled their namespace.
func TestAtHome(t *testing.T) {
	node := liqotest.VirtualNode(cluster.Identity{ID: "55555555-9999", Name: "broker"}, true)
	made := func(kind, owner, name string, change func(*corev1.Pod)) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		pod.Spec.NodeName, pod.Status.Phase = "worker", corev1.PodRunning
		if kind != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: new(true)}}
		}
		if change != nil {
			change(&pod)
		}
		return pod
	}
	web := func(n int) corev1.Pod {
		return made("ReplicaSet", "web-5f4d", fmt.Sprintf("web-5f4d-%d", n), func(p *corev1.Pod) {
			p.Labels = map[string]string{"pod-template-hash": "5f4d"}
		})
	}
	const because = "Pods of namespace shop run at home, though all are to run elsewhere: they were made before Liqo had labelled " +
		"the namespace. There are "
	for name, tc := range map[string]struct {
		strategy   string
		unlabelled bool
		pods       []corev1.Pod
		what, do   string
	}{
		"Deployment": {
			pods: []corev1.Pod{web(2), web(1)}, what: because + "2: web-5f4d-1, web-5f4d-2",
			do: "Make them again: kubectl rollout restart -n shop deployment/web",
		},
		"All": {
			pods: []corev1.Pod{web(1), made("StatefulSet", "db", "db-0", nil), made("Job", "sum", "sum-x", nil), made("", "", "alone", nil),
				made("ReplicaSet", "old", "old-x", nil), made("StatefulSet", "db", "db-1", func(p *corev1.Pod) { p.Spec.NodeName = "" })},
			what: because + "6: alone, db-0, db-1, old-x and 2 more",
			do: "Make them again: kubectl rollout restart -n shop deployment/web statefulset/db; kubectl delete pod -n shop old-x sum-x; " +
				"delete and create yourself what nothing else creates again: alone",
		},
		"NotLabelled": {
			unlabelled: true, pods: []corev1.Pod{web(1)}, what: because + "1: web-5f4d-1",
			do: "Liqo has not labelled the namespace yet. See why: kubectl describe namespaceoffloading -n shop offloading. " +
				"Then: kubectl rollout restart -n shop deployment/web",
		},
		"Meant": {pods: []corev1.Pod{
			made("DaemonSet", "log", "log-x", nil), made("Node", "worker", "proxy-worker", nil), made("Job", "sum", "sum-y", func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodSucceeded
			}), made("", "", "waits", func(p *corev1.Pod) {
				p.Spec.NodeName = ""
				liqo.Admit(p)
			}), made("", "", "away", func(p *corev1.Pod) { p.Spec.NodeName = node.Name }),
			made("ReplicaSet", "web-5f4d", "web-5f4d-3", func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }),
		}},
		"AlsoHere": {strategy: "LocalAndRemote", pods: []corev1.Pod{web(1)}},
		"OnlyHere": {strategy: "Local", pods: []corev1.Pod{web(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			o := v09.NamespaceOffloading{}
			text := `{"metadata":{"namespace":"shop","name":"offloading"},"spec":{"podOffloadingStrategy":"` + cmp.Or(tc.strategy, "Remote") + `"}}`
			if err := json.Unmarshal([]byte(text), &o); err != nil {
				t.Fatal(err)
			}
			ns := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			if !tc.unlabelled {
				ns.Labels = map[string]string{"liqo.io/scheduling-enabled": "true"}
			}
			other := made("", "", "x", func(p *corev1.Pod) { p.Namespace = "other" })
			found := overview.AtHome([]corev1.Namespace{ns}, []liqo.Offloading{v09.OffloadingOf(&o)}, []corev1.Node{*node}, append(tc.pods, other))
			if tc.what == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 || found[0].What != tc.what || found[0].Do != tc.do || !found[0].Problem {
				t.Errorf("%+v", found)
			}
		})
	}
}
