// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/configuration"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// relayedTokens reflects the Secrets of one namespace, and among them those in which another cluster keeps the tokens of its
// pods in transit.
//
// Liqo knows by two labels which Secrets of the foreign cluster hold tokens, and leaves these to the reflector of service
// accounts. It copies the labels from such a Secret of another cluster too: from then on it neither changes the copy nor deletes
// it (liqo/pkg/virtualKubelet/reflection/configuration/secret.go@v0.9.4), and the other reflector takes the copy for the tokens
// of an older pod, and deletes it (serviceaccount.go there). So the labels are not copied, and are taken from copies that have
// them already.
type relayedTokens struct {
	manager.NamespacedReflector

	local, remote corev1listers.SecretNamespaceLister
	// pods are all of the namespace. Liqo tells each virtual kubelet only of the pods of its own node.
	pods   typedcorev1.PodInterface
	copies typedcorev1.SecretInterface
}

// tokenLabels are the labels by which Liqo knows a Secret with tokens.
var tokenLabels = []string{forge.LiqoSASecretForPodNameKey, forge.LiqoSASecretForServiceAccountKey}

// NewSecretReflector returns Liqo's reflector of Secrets, which also relays the tokens of pods in
// transit. Legacy is whether tokens of this cluster are Secrets. The mode tells which replicas of a
// virtual kubelet reflect.
func NewSecretReflector(legacy bool, config *generic.ReflectorConfig, mode generic.ConcurrencyMode) manager.Reflector {
	return appliedOnce{generic.NewReflector(configuration.SecretReflectorName,
		relaysTokens(configuration.NewNamespacedSecretReflector(legacy)),
		generic.WithoutFallback(), config.NumWorkers, config.Type, mode)}
}

// relaysTokens has what reflects the Secrets of a namespace relay tokens.
func relaysTokens(inner generic.NamespacedReflectorFactoryFunc) generic.NamespacedReflectorFactoryFunc {
	return func(opts *options.NamespacedOpts) manager.NamespacedReflector {
		forging := *opts.ForgingOpts
		forging.LabelsNotReflected = slices.Concat(forging.LabelsNotReflected, tokenLabels)
		opts.ForgingOpts = &forging
		return &relayedTokens{
			NamespacedReflector: inner(opts),
			local:               opts.LocalFactory.Core().V1().Secrets().Lister().Secrets(opts.LocalNamespace),
			remote:              opts.RemoteFactory.Core().V1().Secrets().Lister().Secrets(opts.RemoteNamespace),
			pods:                opts.LocalClient.CoreV1().Pods(opts.LocalNamespace),
			copies:              opts.RemoteClient.CoreV1().Secrets(opts.RemoteNamespace),
		}
	}
}

// Handle reflects a Secret.
func (r *relayedTokens) Handle(ctx context.Context, name string) error {
	// An answer of the cache is a Secret, or that there is none.
	remote, err := r.remote.Get(name)
	if err == nil && forge.IsReflected(remote) && forge.IsServiceAccountSecret(remote) {
		if err := r.heal(ctx, remote); err != nil {
			return err
		}
	}
	return r.NamespacedReflector.Handle(ctx, name)
}

// heal makes a copy that has the labels, as an earlier version made it, one like others, or deletes it if its original is gone.
// It leaves alone what Liqo has issued for pods of this cluster.
func (r *relayedTokens) heal(ctx context.Context, remote *corev1.Secret) error {
	local, err := r.local.Get(remote.Name)
	relayed, gone := err == nil && forge.IsServiceAccountSecret(local), err != nil
	if !relayed && (!gone || mayBeOfThisNode(remote)) {
		return nil
	}
	if own, err := r.ofOwnPod(ctx, remote.Name); err != nil || own {
		return err
	}
	if gone {
		return r.delete(ctx, remote)
	}
	return r.unlabel(ctx, remote)
}

// mayBeOfThisNode reports whether a Secret is one that Liqo's reflector of service accounts sees to here, as it does when the
// pod is gone.
func mayBeOfThisNode(remote *corev1.Secret) bool {
	node, named := remote.Labels[forge.LiqoOriginClusterNodeName]
	return !named || node == forge.LiqoNodeName
}

// ofOwnPod reports whether a Secret has the name of that with the tokens of a pod of this cluster, on any of its nodes.
func (r *relayedTokens) ofOwnPod(ctx context.Context, secret string) (bool, error) {
	name, ok := strings.CutSuffix(secret, forge.ServiceAccountSecretName(""))
	if !ok || name == "" {
		return false, nil
	}
	pod, err := r.pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find the pod that Secret %s is for: %w", secret, err)
	}
	_, transit := inTransit(pod)
	return !transit, nil
}

// unlabel takes the labels from a copy. What the foreign cluster then tells of it has it reflected.
func (r *relayedTokens) unlabel(ctx context.Context, remote *corev1.Secret) error {
	labels := map[string]any{}
	for _, label := range tokenLabels {
		labels[label] = nil
	}
	// One that somebody has written meanwhile is looked at again.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": remote.UID, "resourceVersion": remote.ResourceVersion, "labels": labels,
	}})
	if err == nil {
		_, err = r.copies.Patch(ctx, remote.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: forge.ReflectionFieldManager})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take over Secret %s/%s: %w", remote.Namespace, remote.Name, err)
	}
	return nil
}

// delete deletes a copy that has no original any more.
func (r *relayedTokens) delete(ctx context.Context, remote *corev1.Secret) error {
	err := r.copies.Delete(ctx, remote.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &remote.UID, ResourceVersion: &remote.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Secret %s/%s, which was left behind: %w", remote.Namespace, remote.Name, err)
	}
	return nil
}
