// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// liqoLine is the line of Liqo's versions that the steps are for.
const liqoLine = "v0.9."

// liqoRequirements returns an error unless Liqo runs here, of a version that the steps know, and the caller may change it.
func (i *Installer) liqoRequirements(ctx context.Context) error {
	_, err := i.RESTMapper().RESTMapping(schema.GroupKind{Group: "discovery.liqo.io", Kind: "ForeignCluster"})
	if meta.IsNoMatchError(err) {
		if _, err := i.RESTMapper().RESTMapping(schema.GroupKind{Group: "core.liqo.io", Kind: "ForeignCluster"}); err == nil {
			return requirement("Liqo 1.x is not supported yet; this cluster has it, and the broker needs Liqo 0.9")
		}
		return requirement("this cluster has no Liqo: install Liqo 0.9 first")
	}
	if err != nil {
		return fmt.Errorf("ask the API server for Liqo's kinds: %w", err)
	}
	var d appsv1.Deployment
	err = i.Get(ctx, client.ObjectKey{Namespace: liqoNamespace, Name: controllerManager}, &d)
	switch {
	case apierrors.IsNotFound(err):
		return requirement("this cluster has Liqo's kinds, but no Deployment %s/%s: Liqo must run in namespace %s", liqoNamespace, controllerManager, liqoNamespace)
	case apierrors.IsForbidden(err):
		return requirement("you may not read Liqo's installation: %w", err)
	case err != nil:
		return fmt.Errorf("read Deployment %s/%s: %w", liqoNamespace, controllerManager, err)
	}
	container, err := first(&d)
	if err != nil {
		return err
	}
	if tag := tagOf(container.Image); !strings.HasPrefix(tag, liqoLine) {
		return requirement("Liqo's controller manager has the image %s, and the broker needs Liqo %sx", container.Image, liqoLine)
	}
	return i.rights(ctx)
}

// tagOf returns the tag of an image, without a digest; empty if it has none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, name, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found {
		return ""
	}
	return name
}

// rights returns an error unless the caller has those that the steps need most; who has them is an administrator.
func (i *Installer) rights(ctx context.Context) error {
	var missing []string
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: liqoNamespace},
		{Verb: "patch", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "patch", Group: "virtualkubelet.liqo.io", Resource: "virtualnodes"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		if err := i.Create(ctx, review); err != nil {
			return fmt.Errorf("ask the API server for your rights: %w", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, right.Verb+" "+right.Resource+"."+right.Group)
		}
	}
	if len(missing) > 0 {
		return requirement("you lack the rights of an administrator of this cluster: %s", strings.Join(missing, ", "))
	}
	return nil
}

// brokerRequirements returns an error unless the cluster can be a broker.
func (i *Installer) brokerRequirements(ctx context.Context) error {
	if err := i.liqoRequirements(ctx); err != nil {
		return err
	}
	var deployments appsv1.DeploymentList
	if err := i.List(ctx, &deployments, client.MatchingLabels{labelName: BrokerName}); err != nil {
		return fmt.Errorf("list the brokers of this cluster: %w", err)
	}
	for n := range deployments.Items {
		if d := &deployments.Items[n]; d.Namespace != BrokerNamespace {
			return requirement("this cluster has another broker already, in namespace %s", d.Namespace)
		}
	}
	var peers liqo.ForeignClusterList
	if err := i.List(ctx, &peers); err != nil {
		return fmt.Errorf("list the peers of this cluster: %w", err)
	}
	for n := range peers.Items {
		if liqo.InBand(&peers.Items[n]) {
			return requirement("the peering with cluster %s is in-band, and the broker needs out-of-band peerings: end it and peer again", peers.Items[n].Name)
		}
	}
	return nil
}

// notABroker refuses to take from a broker what it needs.
func (i *Installer) notABroker(ctx context.Context) error {
	err := i.Get(ctx, client.ObjectKey{Namespace: BrokerNamespace, Name: BrokerName}, &appsv1.Deployment{})
	if err == nil {
		return requirement("this cluster is a broker: remove that with uninstall")
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read Deployment %s/%s: %w", BrokerNamespace, BrokerName, err)
	}
	return nil
}

// unused returns an error if namespaces of consumers are here, unless that does not matter.
func (i *Installer) unused(ctx context.Context) error {
	if i.options.Force {
		return nil
	}
	var namespaces corev1.NamespaceList
	if err := i.List(ctx, &namespaces); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	var twins []string
	for n := range namespaces.Items {
		if _, twin := liqo.TwinOf(&namespaces.Items[n]); twin {
			twins = append(twins, namespaces.Items[n].Name)
		}
	}
	if len(twins) > 0 {
		const shown = 5
		return requirement("consumers still use this broker: %d namespaces of theirs are here (%s). Have them take these back; with --force, what "+
			"runs goes on, and nobody places new pods", len(twins), strings.Join(twins[:min(shown, len(twins))], ", "))
	}
	return nil
}

// findBroker returns the peer whose consumer this cluster is to be.
func (i *Installer) findBroker(ctx context.Context) (cluster.Identity, error) {
	var peers liqo.ForeignClusterList
	if err := i.List(ctx, &peers); err != nil {
		return cluster.Identity{}, fmt.Errorf("list the peers of this cluster: %w", err)
	}
	var found []cluster.Identity
	var names []string
	for n := range peers.Items {
		peer := liqo.Identity(&peers.Items[n])
		wanted := i.options.Broker
		switch {
		case wanted == "":
			// Without a name, it is the only peer that shows the Service already, or the only peer.
		case peer.Name != wanted && !strings.HasPrefix(string(peer.ID), wanted):
			continue
		}
		found = append(found, peer)
		names = append(names, peer.Name)
	}
	if i.options.Broker == "" && len(found) > 1 {
		found = i.withService(ctx, found)
	}
	switch len(found) {
	case 0:
		return cluster.Identity{}, requirement("no peer of this cluster is the broker (--broker=%q): peer with it first", i.options.Broker)
	case 1:
		return found[0], nil
	default:
		return cluster.Identity{}, requirement("which peer is the broker? Say --broker with one of %s", strings.Join(names, ", "))
	}
}

// withService returns those of peers whose remote IPAM has arrived here; all of them if none has.
func (i *Installer) withService(ctx context.Context, peers []cluster.Identity) []cluster.Identity {
	var with []cluster.Identity
	for _, peer := range peers {
		if _, err := i.remoteIPAM(ctx, peer); err == nil {
			with = append(with, peer)
		}
	}
	if len(with) == 0 {
		return peers
	}
	return with
}
