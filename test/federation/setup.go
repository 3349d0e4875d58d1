// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// setUpIn are the namespaces of Liqo, and of our programs.
var setUpIn = []string{liqoNamespace, brokerNamespace, connector, "liqo-broker-guard"}

// setUpKinds are the kinds of which the set-up of a cluster is made: those that are in namespaces, and those that are not.
var setUpKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "LimitRange"}, {Version: "v1", Kind: "ResourceQuota"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "offloading.liqo.io", Version: "v1alpha1", Kind: "NamespaceOffloading"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},

	{Version: "v1", Kind: "Namespace"}, {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
}

// SetUp returns what is set up on a cluster, by kind and name: what is in the namespaces of Liqo and of our programs, and what holds for
// the whole cluster, without what Liqo makes for single peers. What differs when the same is installed twice is left out: tags of our
// images, certificates, addresses, the order of flags, and what Kubernetes and Helm note.
func (f *Federation) SetUp(ctx context.Context, c *Cluster) (map[string]string, error) {
	found := map[string]string{}
	for _, kind := range setUpKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(ctx, list); meta.IsNoMatchError(err) {
			continue // Kubernetes 1.28 has no admission policies.
		} else if err != nil {
			return nil, fmt.Errorf("list the objects of kind %s of %s: %w", kind.Kind, c.Name, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if !f.ofSetUp(o) {
				continue
			}
			text, err := json.Marshal(settled(o))
			if err != nil {
				return nil, err
			}
			found[kind.Kind+" "+client.ObjectKeyFromObject(o).String()] = certificate.ReplaceAllString(ownImage.ReplaceAllString(string(text), "$1"),
				"")
		}
	}
	return found, nil
}

// AsSetUp fails unless a cluster is set up as it was: one of the two by what pages say, and the other by the federation of the tests.
func (f *Federation) AsSetUp(ctx context.Context, c *Cluster, was map[string]string) error {
	is, err := f.SetUp(ctx, c)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(was, is); diff != "" {
		return fmt.Errorf("%s is set up otherwise than before (-before +now):\n%s", c.Name, diff)
	}
	return nil
}

// PartsOf returns what of a cluster's set-up is of our programs, by the names in its labels, as it is however it was installed: without
// what names the cluster, and without the labels of Helm.
func PartsOf(c *Cluster, setUp map[string]string, programs ...string) (map[string]string, error) {
	parts := map[string]string{}
	for what, text := range setUp {
		var object map[string]any
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", what, c.Name, err)
		}
		labels, _ := object["labels"].(map[string]any)
		if name, _ := labels["app.kubernetes.io/name"].(string); !slices.Contains(programs, name) {
			continue
		}
		for _, label := range []string{
			"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart",
		} {
			delete(labels, label)
		}
		plain, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		parts[what] = strings.ReplaceAll(string(plain), fmt.Sprintf("https://%s:%d", c.Lab.Address, negotiationPort), "its endpoint")
	}
	return parts, nil
}

var (
	ownImage    = regexp.MustCompile(`(capacitorset/[\w-]+):[\w.-]+`)
	certificate = regexp.MustCompile(`-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----`)
)

// ofSetUp reports whether an object is what people install, and no peer's.
func (f *Federation) ofSetUp(o *unstructured.Unstructured) bool {
	switch {
	case o.GetNamespace() != "":
		return slices.Contains(setUpIn, o.GetNamespace())
	case o.GetKind() == "Namespace":
		return slices.Contains(setUpIn, o.GetName())
	}
	subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
	for _, s := range subjects {
		subject, _ := s.(map[string]any)
		name, _ := subject["name"].(string)
		namespace, _ := subject["namespace"].(string)
		if strings.HasPrefix(namespace, "liqo-tenant-") ||
			slices.ContainsFunc(f.Clusters(), func(c *Cluster) bool { return string(c.ID) == name }) {
			return false
		}
	}
	return true
}

// settled returns what of an object does not differ when the same is installed twice.
func settled(o *unstructured.Unstructured) map[string]any {
	object := o.DeepCopy().Object
	delete(object, "metadata")
	delete(object, "status")
	object["labels"] = o.GetLabels()
	switch o.GetKind() {
	case "CustomResourceDefinition":
		delete(object, "spec")
	case "ClusterRole":
		if object["aggregationRule"] != nil {
			delete(object, "rules") // Kubernetes collects them.
		}
	case "Service":
		for _, field := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(object, "spec", field)
		}
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		each(object, []string{"webhooks"}, func(hook map[string]any) { unstructured.RemoveNestedField(hook, "clientConfig", "caBundle") })
	case "DaemonSet", "Deployment", "StatefulSet":
		for _, field := range []string{"creationTimestamp", "annotations"} {
			unstructured.RemoveNestedField(object, "spec", "template", "metadata", field)
		}
		for _, containers := range []string{"containers", "initContainers"} {
			each(object, []string{"spec", "template", "spec", containers}, func(container map[string]any) {
				if args, found, err := unstructured.NestedStringSlice(container, "args"); err == nil && found {
					slices.Sort(args)
					_ = unstructured.SetNestedStringSlice(container, args, "args") // It was there.
				}
			})
		}
	}
	return object
}

// each calls a function with each element of a list of objects, which it may change.
func each(object map[string]any, at []string, do func(map[string]any)) {
	elements, found, err := unstructured.NestedFieldNoCopy(object, at...)
	list, is := elements.([]any)
	if err != nil || !found || !is {
		return
	}
	for _, element := range list {
		if inner, is := element.(map[string]any); is {
			do(inner)
		}
	}
}
