// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// TestPullSecret installs with a Secret for images, again without naming it, and undoes that: it is in the namespaces in which pods pull
// images of ours, and nowhere else; these pods name it; and nothing of it is left.
func TestPullSecret(t *testing.T) {
	milan := v09.Identity(peer("a", "milan"))
	const broker, guard, manager = BrokerNamespace + "/" + BrokerName, GuardName + "/" + GuardName, liqoNamespace + "/" + networkManager
	const kubelet, tenant = "liqo-tenant-milan/liqo-milan", "liqo-tenant-milan"
	for role, tc := range map[string]struct {
		steps, undo func(*Installer) ([]step, error)
		copied      []string
		named       []string
	}{
		"broker": {
			(*Installer).brokerSteps, (*Installer).brokerUndo, []string{liqoNamespace, BrokerNamespace, GuardName, tenant},
			[]string{guard, broker, manager, kubelet},
		},
		"consumer": {
			func(i *Installer) ([]step, error) { return i.consumerSteps(milan) },
			func(i *Installer) ([]step, error) { return i.consumerUndo(), nil }, []string{tenant}, []string{kubelet},
		},
		"trader": {
			(*Installer).guardSteps, (*Installer).guardUndo, []string{liqoNamespace, GuardName, tenant}, []string{guard, manager, kubelet},
		},
	} {
		t.Run(role, func(t *testing.T) {
			kinds, err := build(".")
			if err != nil {
				t.Fatal(err)
			}
			writes := 0
			c := liqoCluster(t, kinds, &writes)
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"}, Type: corev1.SecretTypeDockerConfigJson,
				Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
			}
			if err := c.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			stock := pulls(t, c)
			install(t, c, Options{PullSecret: "team/mine"}, tc.steps)
			slices.Sort(tc.copied)
			slices.Sort(tc.named)
			want := fmt.Sprint(tc.copied, tc.named)
			if got := pulls(t, c); got != want {
				t.Errorf("it is in, and named by, %s; want %s", got, want)
			}

			install(t, c, Options{}, tc.undo)
			if got := pulls(t, c); got != stock {
				t.Errorf("it is still in, or named by, %s", got)
			}
		})
	}
}

// pulls returns where copies of the Secret are, and which pods name it.
func pulls(t *testing.T, c client.Client) string {
	t.Helper()
	var secrets corev1.SecretList
	var deployments appsv1.DeploymentList
	var nodes v09.VirtualNodeList
	for _, list := range []client.ObjectList{&secrets, &deployments, &nodes} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var copied, named []string
	for _, s := range secrets.Items {
		if s.Name == "mine" {
			continue
		}
		copied = append(copied, s.Namespace)
		if s.Name != pullSecretName || string(s.Data[corev1.DockerConfigJsonKey]) != `{"auths":{}}` ||
			s.Type != corev1.SecretTypeDockerConfigJson || s.Annotations["liqo.io/skip-reflection"] != "true" {
			t.Errorf("a copy is %v", s)
		}
	}
	note := func(object client.Object, spec corev1.PodSpec) {
		switch names := spec.ImagePullSecrets; {
		case len(names) == 1 && names[0].Name == pullSecretName:
			named = append(named, key(object))
		case len(names) > 0:
			t.Errorf("%s pulls with %v", key(object), names)
		}
	}
	for n := range deployments.Items {
		note(&deployments.Items[n], deployments.Items[n].Spec.Template.Spec)
	}
	for n := range nodes.Items {
		_, spec := v09.KubeletDeployment(&nodes.Items[n])
		note(&nodes.Items[n], spec.Template.Spec)
	}
	slices.Sort(copied)
	slices.Sort(named)
	return fmt.Sprint(copied, named)
}

// TestPullSecretStays has a newer version keep the Secrets that somebody has chosen, and one that is given now take their place.
func TestPullSecretStays(t *testing.T) {
	want, live := pod("broker"), pod("broker")
	live.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "chosen"}}
	keepDaemon(want, live, false, nil)
	if got := want.Spec.Template.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != "chosen" {
		t.Errorf("it pulls with %v", got)
	}
	i := &Installer{options: Options{PullSecret: "a/b"}}
	want = pod("broker")
	i.pullBy(&want.Spec.Template.Spec)
	i.pullBy(&want.Spec.Template.Spec)
	keepDaemon(want, live, false, nil)
	if got := want.Spec.Template.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != pullSecretName {
		t.Errorf("it pulls with %v", got)
	}
}

// TestPullSecretRefused has people name what is no Secret for images.
func TestPullSecretRefused(t *testing.T) {
	for value, says := range map[string]string{
		"mine": "with a slash between them", "a/b/c": "with a slash between them", "/a": "with a slash between them",
	} {
		if err := (&Options{PullSecret: value}).Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", value, err)
		}
	}
	if err := (&Options{PullSecret: "a/b", Export: "c"}).Validate(); err == nil || !strings.Contains(err.Error(), "into a repository") {
		t.Errorf("it is exported: %v", err)
	}
	writes := 0
	c := liqoCluster(t, nil, &writes)
	if err := c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Type: "Opaque"}); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"a/b": "is of type Opaque", "a/c": "read Secret a/c"} {
		i := &Installer{objects: objects{c}, options: Options{PullSecret: name}}
		if _, err := i.pullSecrets(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
