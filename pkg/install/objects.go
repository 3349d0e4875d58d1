// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capacitorset/liqo-broker/pkg/await"
)

// fieldOwner is who owns what the installation applies.
const fieldOwner = client.FieldOwner("liqo-broker-install")

// objects writes objects of one cluster.
type objects struct{ client.Client }

// apply returns the changes that make objects as they are given, and leave alone what is not.
func (o objects) apply(ctx context.Context, wanted []*unstructured.Unstructured) ([]change, error) {
	var changes []change
	for _, want := range wanted {
		c, err := o.applyOne(ctx, want)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c...)
	}
	return changes, nil
}

func (o objects) applyOne(ctx context.Context, want *unstructured.Unstructured) ([]change, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	write := func(ctx context.Context) error {
		return o.Patch(ctx, want.DeepCopy(), client.Apply, fieldOwner, client.ForceOwnership)
	}
	err := o.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return []change{{verb: "create", object: describe(want), do: write}}, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", describe(want), err)
	}
	after := want.DeepCopy()
	if err := o.Patch(ctx, after, client.Apply, fieldOwner, client.ForceOwnership, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("check %s: %w", describe(want), err)
	}
	if equality.Semantic.DeepEqual(withoutBookkeeping(live), withoutBookkeeping(after)) {
		return nil, nil
	}
	c := change{verb: "update", object: describe(want), do: write}
	if want.GetKind() != "Secret" {
		c.before, c.after = live, after
	}
	return []change{c}, nil
}

// withoutBookkeeping returns an object without what the API server notes at each write.
func withoutBookkeeping(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetGeneration(0)
	return object
}

// remove returns the changes that delete objects, last ones first.
func (o objects) remove(ctx context.Context, unwanted []*unstructured.Unstructured) ([]change, error) {
	var changes []change
	for i := len(unwanted) - 1; i >= 0; i-- {
		object := unwanted[i].DeepCopy()
		err := o.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", describe(unwanted[i]), err)
		case !object.GetDeletionTimestamp().IsZero():
			continue
		}
		changes = append(changes, o.deletion(object))
	}
	return changes, nil
}

// deletion returns the change that deletes an object.
func (o objects) deletion(object client.Object) change {
	return change{verb: "delete", object: o.describeObject(object), do: func(ctx context.Context) error {
		return client.IgnoreNotFound(o.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}}
}

// gone returns an error that names one of the objects that are still there.
func (o objects) gone(ctx context.Context, unwanted []*unstructured.Unstructured) error {
	for _, object := range unwanted {
		err := o.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
		switch {
		case err == nil:
			return fmt.Errorf("%s is still there", describe(object))
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("read %s: %w", describe(object), err)
		}
	}
	return nil
}

// mutate returns the change that a function makes to an object; none if the function leaves the object as it is.
func (o objects) mutate(ctx context.Context, object client.Object, to func() error) ([]change, error) {
	if err := o.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, fmt.Errorf("read %s: %w", o.describeObject(object), err)
	}
	return o.mutateRead(object, to)
}

// mutateRead is mutate of an object as it was just read.
func (o objects) mutateRead(object client.Object, to func() error) ([]change, error) {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s cannot be copied", o.describeObject(object))
	}
	if err := to(); err != nil {
		return nil, fmt.Errorf("change %s: %w", o.describeObject(object), err)
	}
	if equality.Semantic.DeepEqual(before, object) {
		return nil, nil
	}
	return []change{{verb: "patch", object: o.describeObject(object), before: before, after: object, do: func(ctx context.Context) error {
		return o.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	}}}, nil
}

// describeObject names an object for people.
func (o objects) describeObject(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if gvk, err := apiutil.GVKForObject(object, o.Scheme()); err == nil {
		kind = gvk.Kind
	}
	return kind + " " + key(object)
}

func describe(object *unstructured.Unstructured) string { return object.GetKind() + " " + key(object) }

func key(object client.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return client.ObjectKeyFromObject(object).String()
}

// rolledOut returns an error unless all pods of a Deployment are of its latest template, and ready. It is hopeless when the image of one
// cannot be pulled.
func (o objects) rolledOut(ctx context.Context, at client.ObjectKey) error {
	var d appsv1.Deployment
	if err := o.Get(ctx, at, &d); err != nil {
		return fmt.Errorf("read Deployment %s: %w", at, err)
	}
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	if s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want {
		return nil
	}
	waiting := fmt.Errorf("the Deployment %s has %d of %d pods as it should be, and %d ready", at, s.UpdatedReplicas, want,
		s.AvailableReplicas)
	return errors.Join(waiting, o.pullable(ctx, &d))
}

// pullable returns a hopeless error if Kubernetes cannot pull an image of a Deployment's pods.
func (o objects) pullable(ctx context.Context, d *appsv1.Deployment) error {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read the selector of Deployment %s: %w", client.ObjectKeyFromObject(d), err)
	}
	var pods corev1.PodList
	if err := o.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list the pods of Deployment %s: %w", client.ObjectKeyFromObject(d), err)
	}
	wanted := map[string]bool{}
	for _, c := range containers(&d.Spec.Template.Spec) {
		wanted[c.Image] = true
	}
	for i := range pods.Items {
		status := pods.Items[i].Status
		if !pods.Items[i].DeletionTimestamp.IsZero() {
			continue
		}
		for _, c := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
			switch waiting := c.State.Waiting; {
			case waiting == nil || !slices.ContainsFunc(containers(&pods.Items[i].Spec),
				func(of *corev1.Container) bool { return of.Name == c.Name && wanted[of.Image] }):
				// It runs, or is about to be replaced.
			case waiting.Reason == "ImagePullBackOff", waiting.Reason == "InvalidImageName", waiting.Reason == "ErrImageNeverPull":
				return await.Hopeless(fmt.Errorf("pod %s cannot have image %s: %s (--registry and --tag say which one it is)",
					client.ObjectKeyFromObject(&pods.Items[i]), c.Image, waiting.Message))
			}
		}
	}
	return nil
}
