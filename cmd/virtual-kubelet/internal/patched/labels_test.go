// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	nodeprovider "github.com/liqotech/liqo/pkg/virtualKubelet/liqoNodeProvider"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// nodeServer is an API server that has one VirtualNode and its node.
type nodeServer struct {
	t       *testing.T
	virtual vkv1alpha1.VirtualNode

	mu   sync.Mutex
	node []byte
}

func (s *nodeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Has("sendInitialEvents"):
		http.Error(w, "Ask for a list.", http.StatusUnprocessableEntity)
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "/virtualnodes"):
		s.answer(w, vkv1alpha1.VirtualNodeList{
			TypeMeta: metav1.TypeMeta{APIVersion: vkv1alpha1.SchemeGroupVersion.String(), Kind: "VirtualNodeList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []vkv1alpha1.VirtualNode{s.virtual},
		})
	case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/nodes/"+virtualNode):
		s.patch(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *nodeServer) answer(w io.Writer, object any) {
	if err := json.NewEncoder(w).Encode(object); err != nil {
		s.t.Error(err)
	}
}

func (s *nodeServer) patch(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node, err = operations.Apply(s.node); err != nil {
		s.t.Error(err)
	}
	if _, err := w.Write(s.node); err != nil {
		s.t.Error(err)
	}
}

// TestOwnNodeLabels has an offer whose labels say what its virtual node is.
func TestOwnNodeLabels(t *testing.T) {
	claimed := map[string]string{
		consts.RemoteClusterID: "victim-id", consts.TypeLabel: "worker", corev1.LabelHostname: "victim",
		"node-role.kubernetes.io/control-plane": "", "topology.kubernetes.io/region": "north", corev1.LabelArchStable: "arm64",
		consts.ProviderClusterLabel: "kubeadm", "certified": "yes", "brokering.liqo.io/carbon-gco2e-per-kwh": "312",
		"brokering.liqo.io/virtual-kubelet": "forged",
	}
	server := &nodeServer{t: t, virtual: vkv1alpha1.VirtualNode{
		TypeMeta:   metav1.TypeMeta{APIVersion: vkv1alpha1.SchemeGroupVersion.String(), Kind: "VirtualNode"},
		ObjectMeta: metav1.ObjectMeta{Name: virtualNode, Namespace: "tenant", ResourceVersion: "1"},
		Spec: vkv1alpha1.VirtualNodeSpec{
			ClusterIdentity: &discoveryv1alpha1.ClusterIdentity{ClusterID: providerID, ClusterName: "provider"}, Labels: claimed,
		},
	}}
	api := httptest.NewServer(server)
	defer api.Close()
	config := &rest.Config{Host: api.URL}
	provider := nodeprovider.NewLiqoNodeProvider(&nodeprovider.InitConfig{
		HomeConfig: config, RemoteConfig: config, RemoteClusterID: providerID, Namespace: "tenant", NodeName: virtualNode,
	})
	var err error
	if server.node, err = json.Marshal(provider.GetNode()); err != nil {
		t.Fatal(err)
	}
	notified := make(chan map[string]string, 10)
	provider.NotifyNodeStatus(t.Context(), func(node *corev1.Node) { notified <- node.Labels })
	close(provider.StartProvider(t.Context()))
	var got map[string]string
	select {
	case got = <-notified:
	case <-time.After(10 * time.Second):
		t.Fatal("the node is not updated")
	}
	api.CloseClientConnections() // End the watch.

	for key, want := range map[string]string{
		consts.RemoteClusterID: providerID, consts.TypeLabel: consts.TypeNode, corev1.LabelHostname: virtualNode,
		consts.StorageAvailableLabel: "false", "topology.kubernetes.io/region": "north", corev1.LabelArchStable: "arm64",
		consts.ProviderClusterLabel: "kubeadm", "certified": "yes", "brokering.liqo.io/carbon-gco2e-per-kwh": "312",
	} {
		if got[key] != want {
			t.Errorf("label %s is %q, want %q", key, got[key], want)
		}
	}
	for _, key := range []string{"node-role.kubernetes.io/control-plane", "brokering.liqo.io/virtual-kubelet"} {
		if _, is := got[key]; is {
			t.Errorf("the node has the label %s, which the foreign cluster gave to it", key)
		}
	}
}
