// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// pullSecretName is what the copies of the Secret are called with which images are pulled, and what their label says.
const pullSecretName = "liqo-broker-pull" //nolint:gosec // It is a name.

// validatePull returns an error if what people have said of pulling images is not such as they may choose.
func (o *Options) validatePull() error {
	namespace, name, found := strings.Cut(o.PullSecret, "/")
	switch {
	case o.PullSecret == "":
		return nil
	case !found || namespace == "" || name == "" || strings.Contains(name, "/"):
		return field.Invalid(field.NewPath("pull-secret"), o.PullSecret,
			"must be the namespace and the name of a Secret, with a slash between them")
	case o.Export != "":
		return field.Invalid(field.NewPath("pull-secret"), o.PullSecret,
			"must not stand beside an export: no credentials belong into a repository")
	}
	return nil
}

// pullSecrets returns a copy of the Secret that was chosen for each of some namespaces; nothing if none was chosen.
func (i *Installer) pullSecrets(ctx context.Context, namespaces ...string) ([]*unstructured.Unstructured, error) {
	if i.options.PullSecret == "" {
		return nil, nil
	}
	namespace, name, _ := strings.Cut(i.options.PullSecret, "/")
	var secret corev1.Secret
	if err := i.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", i.options.PullSecret, err)
	}
	if secret.Type != corev1.SecretTypeDockerConfigJson && secret.Type != corev1.SecretTypeDockercfg {
		return nil, requirement("Secret %s is of type %s, and images are pulled with one of type %s", i.options.PullSecret, secret.Type,
			corev1.SecretTypeDockerConfigJson)
	}
	data := map[string]any{}
	for key, value := range secret.Data {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	copies := make([]*unstructured.Unstructured, len(namespaces))
	for n, to := range namespaces {
		copies[n] = &unstructured.Unstructured{Object: map[string]any{"type": string(secret.Type), "data": data}}
		copies[n].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		copies[n].SetNamespace(to)
		copies[n].SetName(pullSecretName)
		copies[n].SetLabels(map[string]string{labelName: pullSecretName})
		liqo.KeepHere(copies[n])
	}
	return copies, nil
}

// pulling are the steps that bring the Secret to where Liqo's pods need it that run images of ours: the virtual kubelets that exist, and on
// request its network manager. There are none without a Secret.
func (i *Installer) pulling(besides ...string) []step {
	if i.options.PullSecret == "" {
		return nil
	}
	return []step{{"let Liqo's pods pull our images", func(ctx context.Context) ([]change, error) {
		namespaces := slices.Clone(besides)
		if _, err := i.eachVirtualNode(ctx, func(n *v09.VirtualNode) ([]change, error) {
			namespaces = append(namespaces, n.Namespace)
			return nil, nil
		}); err != nil {
			return nil, err
		}
		slices.Sort(namespaces)
		copies, err := i.pullSecrets(ctx, slices.Compact(namespaces)...)
		if err != nil {
			return nil, err
		}
		return i.apply(ctx, copies)
	}, nil}}
}

// pullBy has a pod pull its images with the copy of the Secret, if one was chosen.
func (i *Installer) pullBy(spec *corev1.PodSpec) {
	if i.options.PullSecret != "" && !slices.ContainsFunc(spec.ImagePullSecrets, isPullSecret) {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: pullSecretName})
	}
}

// pullAsBefore undoes pullBy.
func pullAsBefore(spec *corev1.PodSpec) {
	spec.ImagePullSecrets = emptyIsNil(slices.DeleteFunc(spec.ImagePullSecrets, isPullSecret))
}

func isPullSecret(reference corev1.LocalObjectReference) bool {
	return reference.Name == pullSecretName
}

// noPullSecrets returns the changes that delete all copies. What is in them is not read.
func (i *Installer) noPullSecrets(ctx context.Context) ([]change, error) {
	copies := metav1.PartialObjectMetadataList{}
	copies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := i.List(ctx, &copies, client.MatchingLabels{labelName: pullSecretName}); err != nil {
		return nil, fmt.Errorf("list the Secrets with which images are pulled: %w", err)
	}
	var all []change
	for n := range copies.Items {
		all = append(all, i.deletion(&copies.Items[n]))
	}
	return all, nil
}
