// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	_ "embed" // For the flags.
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// withChoices returns manifests with what people have chosen since they were installed: the replicas, modes and further flags of the
// daemon, and what is in ConfigMaps. Modes that are given now count for more.
func (i *Installer) withChoices(ctx context.Context, wanted []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	chosen := make([]*unstructured.Unstructured, len(wanted))
	for n, want := range wanted {
		chosen[n] = want.DeepCopy()
		var err error
		switch want.GetKind() {
		case kindDeployment:
			err = keep(ctx, i.objects, chosen[n], func(want, live *appsv1.Deployment) {
				for _, flag := range keepDaemon(want, live, i.options.modesGiven, flagsOf(want.Name)) {
					fmt.Fprintf(i.run.out, "      without %s, which this version of the broker does not have\n", sheet.Plain(flag))
				}
			})
		case "ConfigMap":
			err = keep(ctx, i.objects, chosen[n], func(want, live *corev1.ConfigMap) { want.Data = live.Data })
		}
		if err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// keep lets a function take something of the object that is there into the one that is wanted, if there is one.
func keep[T any, P interface {
	*T
	client.Object
}](ctx context.Context, o objects, object *unstructured.Unstructured, from func(want, live P)) error {
	live := P(new(T))
	switch err := o.Get(ctx, client.ObjectKeyFromObject(object), live); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", describe(object), err)
	}
	return edit(object, func(want P) error {
		from(want, live)
		return nil
	})
}

// edit changes a manifest as an object of its type.
func edit[T any, P interface {
	*T
	client.Object
}](manifest *unstructured.Unstructured, to func(P) error) error {
	typed := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, typed); err != nil {
		return fmt.Errorf("read the manifest of %s: %w", describe(manifest), err)
	}
	if err := to(typed); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return fmt.Errorf("write the manifest of %s: %w", describe(manifest), err)
	}
	kind := manifest.GroupVersionKind()
	manifest.Object = content
	manifest.SetGroupVersionKind(kind)
	withoutZeros(manifest)
	return nil
}

// withoutZeros removes what the conversion of a typed object adds, so that nobody claims to own it.
func withoutZeros(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "creationTimestamp")
}

// modePrefix begins the flags of the daemon that say what it does.
const modePrefix = "--with-"

// flags are those that the daemon has, one a line; a test beside the daemon compares them.
//
//go:embed flags.txt
var flags string

// guardFlags are those of the guard.
//
//go:embed guardflags.txt
var guardFlags string

// transitFlags and agentFlags are those of the transit and of the agent.
//
//go:embed transitflags.txt
var transitFlags string

//go:embed agentflags.txt
var agentFlags string

// flagsOf returns the flags that a Deployment of ours has.
func flagsOf(deployment string) []string {
	switch deployment {
	case GuardName:
		return strings.Fields(guardFlags)
	case TransitName:
		return strings.Fields(transitFlags)
	case AgentName:
		return strings.Fields(agentFlags)
	default:
		return strings.Fields(flags)
	}
}

// keepDaemon gives the Deployment that is wanted the replicas of the one that is there, the Secrets with which it pulls images unless
// one is given, its flags of other names, and its modes unless they are given. It returns the flags that it drops because they are none
// of the known ones any more, with which its program would not start.
func keepDaemon(want, live *appsv1.Deployment, modesGiven bool, known []string) (dropped []string) {
	if live.Spec.Replicas != nil {
		want.Spec.Replicas = live.Spec.Replicas
	}
	if len(want.Spec.Template.Spec.ImagePullSecrets) == 0 {
		want.Spec.Template.Spec.ImagePullSecrets = live.Spec.Template.Spec.ImagePullSecrets
	}
	to, err1 := first(want)
	from, err2 := first(live)
	if err1 != nil || err2 != nil {
		return nil // The manifest is as good as it can be.
	}
	name := func(flag string) string {
		name, _, _ := strings.Cut(flag, "=")
		return name
	}
	if !modesGiven {
		to.Args = slices.DeleteFunc(to.Args, isMode)
	}
	given := map[string]bool{}
	for _, flag := range to.Args {
		given[name(flag)] = true
	}
	for _, flag := range from.Args {
		switch {
		case given[name(flag)] || modesGiven && isMode(flag):
		case strings.HasPrefix(flag, "--") && !slices.Contains(known, strings.TrimPrefix(name(flag), "--")):
			dropped = append(dropped, flag)
		default:
			to.Args = append(to.Args, flag)
		}
	}
	if slices.Equal(slices.Sorted(slices.Values(to.Args)), slices.Sorted(slices.Values(from.Args))) {
		to.Args = from.Args // Another order is no change.
	}
	return dropped
}

// isMode reports whether a flag says what the daemon does.
func isMode(flag string) bool {
	mode, is := strings.CutPrefix(flag, modePrefix)
	return is && slices.Contains(modes, mode)
}
