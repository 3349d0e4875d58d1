// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"testing"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/storage"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/trace"
)

func TestClaimsOfOtherNodes(t *testing.T) {
	const class, selected = "liqo", "volume.kubernetes.io/selected-node"
	cases := map[string]struct {
		reason, node string
		// storage is whether the foreign cluster has any.
		storage        bool
		keeps, applied bool
	}{
		"Other":          {"the node of a claim is that of the scheduler's choice", "liqo-other", false, true, false},
		"OtherOfStorage": {"the virtual kubelet of that node makes the claim there", "liqo-other", true, true, false},
		"Own":            {"the scheduler is to choose a node that has storage", virtualNode, false, false, false},
		"OwnOfStorage":   {"the foreign cluster has the claim", virtualNode, true, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "data", UID: "1", Annotations: map[string]string{
					selected: tc.node, "volume.beta.kubernetes.io/storage-provisioner": consts.StorageProvisionerName,
				}},
				Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new(class)},
			}
			node := func(name, of string) *corev1.Node {
				return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{consts.RemoteClusterID: of}}}
			}
			opts := namespacedOptions(t, claim, node(virtualNode, providerID), node("liqo-other", "other-id"), &storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: consts.StorageProvisionerName,
				VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
			})
			reflector := storage.NewNamespacedPersistentVolumeClaimReflector(class, "disks", tc.storage)(opts)
			opts.LocalFactory.Start(t.Context().Done())
			opts.LocalFactory.WaitForCacheSync(t.Context().Done())

			// The clients of both clusters are one, which applies nothing by itself.
			client, ok := opts.RemoteClient.(*fake.Clientset)
			if !ok {
				t.Fatalf("the client is a %T", opts.RemoteClient)
			}
			applied := false
			client.PrependReactor("patch", "persistentvolumeclaims", func(action k8stesting.Action) (bool, runtime.Object, error) {
				applied = action.GetNamespace() == "twin"
				return true, &corev1.PersistentVolumeClaim{}, nil
			})
			if err := reflector.Handle(trace.ContextWithTrace(t.Context(), trace.New("test")), "data"); err != nil {
				t.Fatal(err)
			}
			after, err := client.CoreV1().PersistentVolumeClaims("home").Get(t.Context(), "data", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if keeps := after.Annotations[selected] != ""; keeps != tc.keeps {
				t.Errorf("%s: its node is %q", tc.reason, after.Annotations[selected])
			}
			if applied != tc.applied {
				t.Errorf("%s: applied %t, want %t", tc.reason, applied, tc.applied)
			}
		})
	}
}
