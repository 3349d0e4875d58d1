// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/configuration"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

func downward(fields ...string) corev1.VolumeProjection {
	projection := &corev1.DownwardAPIProjection{}
	for _, field := range fields {
		projection.Items = append(projection.Items,
			corev1.DownwardAPIVolumeFile{Path: "file-" + field, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata." + field}})
	}
	return corev1.VolumeProjection{DownwardAPI: projection}
}

// ofToken is a file of the Secret with the tokens of the pod.
func ofToken(key, path string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: "web-token"}, Items: []corev1.KeyToPath{{Key: key, Path: path}},
	}}
}

// TestNamespaceBesideToken reflects a pod with Liqo's own reflector.
func TestNamespaceBesideToken(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	reflectiontest.BeBroker()
	token := ofToken(forge.ServiceAccountTokenKey("kube-api-access-x", "token"), "token")
	namespace := ofToken("namespace", "file-namespace")
	cases := map[string]struct {
		reason  string
		origin  string
		support forge.APIServerSupportType
		server  string
		sources []corev1.VolumeProjection
		want    []corev1.VolumeProjection
	}{
		"Default": {reason: "the token and the name are of one cluster", support: forge.APIServerSupportTokenAPI,
			sources: []corev1.VolumeProjection{issuedToken, authority, downward("namespace")},
			want:    []corev1.VolumeProjection{token, authority, namespace}},
		"OtherFields": {reason: "what is not the namespace stays", support: forge.APIServerSupportTokenAPI,
			sources: []corev1.VolumeProjection{downward("name", "namespace", "uid"), issuedToken},
			want:    []corev1.VolumeProjection{downward("name", "uid"), token, namespace}},
		"NoNamespace": {reason: "nobody asked", support: forge.APIServerSupportTokenAPI,
			sources: []corev1.VolumeProjection{issuedToken, downward("name")},
			want:    []corev1.VolumeProjection{token, downward("name")}},
		"NoToken": {reason: "the downward API tells about the pod that runs", support: forge.APIServerSupportTokenAPI,
			sources: []corev1.VolumeProjection{authority, downward("namespace")},
			want:    []corev1.VolumeProjection{authority, downward("namespace")}},
		"SecretOfThatName": {reason: "a Secret of the user is no token", support: forge.APIServerSupportTokenAPI,
			sources: []corev1.VolumeProjection{ofToken("a", "b"), downward("namespace")},
			want:    []corev1.VolumeProjection{ofToken("a", "b"), downward("namespace")}},
		"NoSupport": {reason: "there is no token, and no Secret", support: forge.APIServerSupportDisabled,
			sources: []corev1.VolumeProjection{issuedToken, downward("namespace")},
			want:    []corev1.VolumeProjection{downward("namespace")}},
		"OfProvider": {reason: "a token of where the pod runs is for the namespace there", support: forge.APIServerSupportTokenAPI,
			server:  consts.APIServerSupportAnnotationValueRemote,
			sources: []corev1.VolumeProjection{issuedToken, downward("namespace")},
			want:    []corev1.VolumeProjection{issuedToken, downward("namespace")}},
		"InTransit": {reason: "the cluster that the pod belongs to has said its own name", support: forge.APIServerSupportTokenAPI,
			origin: "consumer", sources: []corev1.VolumeProjection{token, namespace},
			want: []corev1.VolumeProjection{token, namespace}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := reflectiontest.PodOf(tc.origin, func(pod *corev1.Pod) {
				if tc.server != "" {
					pod.Annotations = map[string]string{consts.APIServerSupportAnnotation: tc.server}
				}
				pod.Spec.Volumes = access(tc.sources...)
			})
			before := pod.DeepCopy()
			pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, nil,
				&workload.PodReflectorConfig{APIServerSupport: tc.support}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
			c := reflectiontest.Start(t, &transit{Reflector: reflectiontest.Unstarted(pods)}, pods.NewNamespaced, pod)
			if err := c.Handle(t.Context()); err != nil {
				t.Fatal(err)
			}
			shadow, err := c.RemoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(access(tc.want...), shadow.Spec.Pod.Volumes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before.Spec, pod.Spec); diff != "" {
				t.Errorf("the pod itself was changed:\n%s", diff)
			}
		})
	}
}

// TestSecretNamesNamespace reflects a token with Liqo's own reflector.
func TestSecretNamesNamespace(t *testing.T) {
	reflectiontest.BeBroker()
	var namespaced func(*options.NamespacedOpts) manager.NamespacedReflector
	tokens := configuration.NewServiceAccountReflector(true, &generic.ReflectorConfig{Type: consts.CustomLiqo})
	if made, ok := tokens.(*configuration.ServiceAccountReflector); ok {
		namespaced = made.NewNamespaced
	}
	c := reflectiontest.Start(t, &tokenless{Reflector: reflectiontest.Unstarted(tokens)}, namespaced,
		reflectiontest.PodOf("", func(pod *corev1.Pod) { pod.Spec.Volumes = access(issuedToken) }))
	c.Local.PrependReactor("create", "serviceaccounts", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "secret"}}, nil
	})
	var applied struct {
		StringData map[string]string `json:"stringData"`
	}
	c.Remote.PrependReactor("patch", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if patch, ok := action.(k8stesting.PatchAction); ok && action.GetNamespace() == "twin-broker" && patch.GetName() == "web-token" {
			return true, &corev1.Secret{}, json.Unmarshal(patch.GetPatch(), &applied)
		}
		return true, &corev1.Secret{}, nil
	})
	_ = c.Handle(t.Context()) // Liqo says when it looks again.
	want := map[string]string{forge.ServiceAccountTokenKey("kube-api-access-x", "token"): "secret", "namespace": "twin"}
	if diff := cmp.Diff(want, applied.StringData); diff != "" {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
}
