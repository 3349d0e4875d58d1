// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"slices"

	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1clients "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A pod finds, beside the token for the API server of its own cluster, a file with the name
// of its namespace there. Kubernetes fills it by the downward API where the pod runs, and
// there the namespace has another name: who asks that API server about it is refused. So the
// Secret with the token holds the name as well, and the file is made of that.

// namespaceKey is where the Secret with the tokens of a pod holds the name of its namespace.
// Liqo's keys are names of volumes with a suffix (ServiceAccountTokenKey in
// liqo/pkg/virtualKubelet/forge/secrets.go@v0.9.4).
const namespaceKey = corev1.ServiceAccountNamespaceKey

// namespaceField is what the downward API calls it.
const namespaceField = "metadata.namespace"

// keepTokenNamespace makes the file of the namespace beside a token of this cluster say what
// the namespace is called here.
func keepTokenNamespace(local *corev1.Pod, spec *corev1.PodSpec) {
	secret := forge.ServiceAccountSecretName(local.Name)
	for i := range spec.Volumes {
		projected := spec.Volumes[i].Projected
		if projected == nil || !issuesToken(local, spec.Volumes[i].Name) || !slices.ContainsFunc(projected.Sources, isOf(secret)) {
			continue
		}
		var names []corev1.KeyToPath
		sources := make([]corev1.VolumeProjection, 0, len(projected.Sources))
		for _, source := range projected.Sources {
			if source.DownwardAPI != nil {
				var others []corev1.DownwardAPIVolumeFile
				for _, file := range source.DownwardAPI.Items {
					if file.FieldRef != nil && file.FieldRef.FieldPath == namespaceField {
						names = append(names, corev1.KeyToPath{Key: namespaceKey, Path: file.Path, Mode: file.Mode})
					} else {
						others = append(others, file)
					}
				}
				if len(others) == 0 {
					continue
				}
				source.DownwardAPI = &corev1.DownwardAPIProjection{Items: others}
			}
			sources = append(sources, source)
		}
		if len(names) > 0 {
			sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: names,
			}})
		}
		projected.Sources = sources
	}
}

// namespaceFiles returns what makes, by the downward API, the files of the namespace that some
// sources make of a Secret.
func namespaceFiles(sources []corev1.VolumeProjection, those func(corev1.VolumeProjection) bool) []corev1.VolumeProjection {
	var files []corev1.DownwardAPIVolumeFile
	for _, source := range sources {
		if !those(source) {
			continue
		}
		for _, item := range source.Secret.Items {
			if item.Key == namespaceKey {
				files = append(files, corev1.DownwardAPIVolumeFile{
					Path: item.Path, Mode: item.Mode, FieldRef: &corev1.ObjectFieldSelector{FieldPath: namespaceField},
				})
			}
		}
	}
	if len(files) == 0 {
		return nil
	}
	return []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: files}}}
}

// issuesToken reports whether a volume of a pod holds a token of this cluster.
func issuesToken(local *corev1.Pod, volume string) bool {
	return slices.ContainsFunc(local.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(source corev1.VolumeProjection) bool {
			return source.ServiceAccountToken != nil
		})
	})
}

// isOf returns what reports whether a source is a Secret.
func isOf(secret string) func(corev1.VolumeProjection) bool {
	return func(source corev1.VolumeProjection) bool { return source.Secret != nil && source.Secret.Name == secret }
}

// namingClient is a client of the foreign cluster that adds, to each Secret that it applies,
// what the namespace is called in this cluster.
type namingClient struct {
	kubernetes.Interface
	local string
}

// CoreV1 returns the client of the group that has Secrets.
func (c namingClient) CoreV1() corev1clients.CoreV1Interface {
	return namingGroup{c.Interface.CoreV1(), c.local}
}

type namingGroup struct {
	corev1clients.CoreV1Interface
	local string
}

func (g namingGroup) Secrets(namespace string) corev1clients.SecretInterface {
	return namingSecrets{g.CoreV1Interface.Secrets(namespace), g.local}
}

type namingSecrets struct {
	corev1clients.SecretInterface
	local string
}

// Apply applies a Secret.
func (s namingSecrets) Apply(
	ctx context.Context, secret *corev1apply.SecretApplyConfiguration, opts metav1.ApplyOptions,
) (*corev1.Secret, error) {
	return s.SecretInterface.Apply(ctx, secret.WithStringData(map[string]string{namespaceKey: s.local}), opts)
}
