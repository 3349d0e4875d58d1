// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package stale_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/agent/stale"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// home is a consumer whose pod at a broker is shown under a new address, and the IP that Liqo made under the old one.
type home struct {
	pod    *corev1.Pod
	ip     *api.IP
	node   *api.VirtualNode
	record *api.ForeignCluster
	others []client.Object
}

func newHome() *home {
	return &home{
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "pod"}, Spec: corev1.PodSpec{NodeName: "broker"},
			Status: corev1.PodStatus{PodIP: "10.65.0.12", PodIPs: []corev1.PodIP{{IP: "10.65.0.12"}}},
		},
		ip: &api.IP{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "ip",
				Labels:          map[string]string{"offloading.liqo.io/pod-name": "web", "offloading.liqo.io/pod-namespace": "shop"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "pod"}},
			},
			Spec: api.IPSpec{IP: "10.69.0.12"},
		},
		node: &api.VirtualNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-broker", Name: "broker"}, Spec: api.VirtualNodeSpec{ClusterID: "broker"},
		},
		record: &api.ForeignCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "broker", Annotations: map[string]string{"brokering.liqo.io/broker": "true"}},
			Spec:       api.ForeignClusterSpec{ClusterID: "broker"},
		},
	}
}

// start returns a client of the cluster, and what it deletes with.
func (h *home) start(t *testing.T) (c client.WithWatch, deleted *[]client.DeleteOptions) {
	t.Helper()
	scheme, err := daemon.Kinds(api.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	deleted = &[]client.DeleteOptions{}
	note := func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		var all client.DeleteOptions
		all.ApplyOptions(opts)
		*deleted = append(*deleted, all)
		return c.Delete(ctx, o, opts...)
	}
	objects := append([]client.Object{h.pod, h.ip, h.node, h.record}, h.others...)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{Delete: note}).Build(), deleted
}

var request = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}

func TestReconcile(t *testing.T) {
	cases := map[string]struct {
		reason  string
		with    func(*home)
		deleted bool
	}{
		"Stale": {"Liqo cannot give it the new address.", func(*home) {}, true},
		"AlsoOwned": {"Whoever else owns it.", func(h *home) {
			other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
			h.ip.OwnerReferences = append([]metav1.OwnerReference{other}, h.ip.OwnerReferences...)
		}, true},
		"Right":     {"It has the address of the pod.", func(h *home) { h.ip.Spec.IP = "10.65.0.12" }, false},
		"NoAddress": {"Where the pod will be shown, nobody knows.", func(h *home) { h.pod.Status = corev1.PodStatus{} }, false},
		"OtherPod":  {"It is none of this pod.", func(h *home) { h.ip.Name = "api" }, false},
		"OtherNamespace": {"Also where pods have the same name.", func(h *home) {
			h.ip.Namespace = "office"
		}, false},
		"People":     {"People may open a pod, too.", func(h *home) { h.ip.Labels, h.ip.OwnerReferences = nil, nil }, false},
		"Unlabelled": {"An owner alone is not Liqo's mark.", func(h *home) { h.ip.Labels = nil }, false},
		"LabelOfOther": {"Nor is the label of another pod.", func(h *home) {
			h.ip.Labels["offloading.liqo.io/pod-name"] = "api"
		}, false},
		"LabelOfOtherNamespace": {"Or of one elsewhere.", func(h *home) {
			h.ip.Labels["offloading.liqo.io/pod-namespace"] = "office"
		}, false},
		"Ownerless":  {"Labels alone are not, either.", func(h *home) { h.ip.OwnerReferences = nil }, false},
		"OwnerKind":  {"Its owner is a pod.", func(h *home) { h.ip.OwnerReferences[0].Kind = "Service" }, false},
		"OwnerGroup": {"Not what is called so elsewhere.", func(h *home) { h.ip.OwnerReferences[0].APIVersion = "example.com/v1" }, false},
		"OwnerName":  {"The pod itself.", func(h *home) { h.ip.OwnerReferences[0].Name = "api" }, false},
		"Former":     {"What a former pod has left goes with it.", func(h *home) { h.ip.OwnerReferences[0].UID = "former" }, false},
		"Going": {"It is deleted once.", func(h *home) {
			h.ip.DeletionTimestamp, h.ip.Finalizers = &metav1.Time{Time: time.Unix(9000, 0)}, []string{"ip.liqo.io/finalizer"}
		}, false},
		"Peer":    {"The pods of other peers are none of the agent's.", func(h *home) { h.record.Annotations = nil }, false},
		"SaidNot": {"People say who is a broker.", func(h *home) { h.record.Annotations["brokering.liqo.io/broker"] = "false" }, false},
		"Unknown": {"A node of nobody known is none of a broker.", func(h *home) { h.node.Spec.ClusterID = "other" }, false},
		"OwnNode": {"Nor is a node of this cluster.", func(h *home) { h.pod.Spec.NodeName = "worker" }, false},
		"Unbound": {"Nor none at all.", func(h *home) { h.pod.Spec.NodeName = "" }, false},
		"TwoNodes": {"Of two peers that have a node of this name, one is no broker.", func(h *home) {
			other := h.node.DeepCopy()
			other.Namespace, other.Spec.ClusterID = "liqo-tenant-peer", "peer"
			h.others = append(h.others, other)
		}, false},
		"OtherNode": {"Where other nodes lead, does not matter.", func(h *home) {
			other := h.node.DeepCopy()
			other.Namespace, other.Name, other.Spec.ClusterID = "liqo-tenant-peer", "peer", "peer"
			h.others = append(h.others, other)
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHome()
			tc.with(h)
			c, deleted := h.start(t)
			if _, err := stale.New(stale.Config{Client: c, Live: c}).Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if got := len(*deleted) > 0; got != tc.deleted {
				t.Fatalf("%s deleted: %t, want %t", tc.reason, got, tc.deleted)
			}
			if !tc.deleted {
				return
			}
			if err := c.Get(t.Context(), request.NamespacedName, &api.IP{}); !apierrors.IsNotFound(err) {
				t.Errorf("the IP is there: %v", err)
			}
			same := (*deleted)[0].Preconditions
			if same == nil || same.UID == nil || *same.UID != "ip" || same.ResourceVersion == nil || *same.ResourceVersion == "" {
				t.Errorf("deleted if %+v, want: only what was seen", same)
			}
		})
	}
}

// TestPodGone has nothing to do for a pod that is gone, seen so by the cache or only by the API server.
func TestPodGone(t *testing.T) {
	h := newHome()
	c, deleted := h.start(t)
	empty := fake.NewClientBuilder().WithScheme(c.Scheme()).Build()
	for name, cfg := range map[string]stale.Config{"Cached": {Client: empty, Live: c}, "Live": {Client: c, Live: empty}} {
		if _, err := stale.New(cfg).Reconcile(t.Context(), request); err != nil || len(*deleted) > 0 {
			t.Errorf("%s: deleted %v, error %v", name, *deleted, err)
		}
	}
}

// TestBehind deletes nothing because the cache has the pod under an address of before: its IP is right.
func TestBehind(t *testing.T) {
	now, before := newHome(), newHome()
	now.ip.Spec.IP, before.ip.Spec.IP = "10.65.0.12", "10.65.0.12"
	before.pod.Status.PodIP = "10.69.0.12"
	live, _ := now.start(t)
	cached, deleted := before.start(t)
	if _, err := stale.New(stale.Config{Client: cached, Live: live}).Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if len(*deleted) > 0 {
		t.Error("deleted what Liqo has just made")
	}
}

// TestWrittenSince deletes nothing that somebody has written since it was seen.
func TestWrittenSince(t *testing.T) {
	c, _ := newHome().start(t)
	behind := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if _, is := o.(*api.IP); is {
				o.SetResourceVersion("1")
			}
			return err
		},
	})
	_, err := stale.New(stale.Config{Client: behind, Live: c}).Reconcile(t.Context(), request)
	if !apierrors.IsConflict(err) {
		t.Errorf("error = %v, want a conflict", err)
	}
	if err := c.Get(t.Context(), request.NamespacedName, &api.IP{}); err != nil {
		t.Errorf("the IP is not there: %v", err)
	}
}
