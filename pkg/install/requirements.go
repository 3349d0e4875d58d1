// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// ImageTag returns the tag of an image, without a digest; empty if it has none.
func ImageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, name, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found {
		return ""
	}
	return name
}

// rights returns an error unless the caller has those that the steps need most; who has them is an administrator.
func (i *Installer) rights(ctx context.Context, of line) error {
	if i.options.Export != "" {
		return nil // Who only writes files need not.
	}
	var missing []string
	for _, right := range of.rights() {
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
func (i *Installer) brokerRequirements(ctx context.Context, seen *Setup) error {
	if err := i.lookForHelm(ctx); err != nil {
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
	return seen.line.mayBroker(ctx, i, seen)
}

// lookForHelm notes whether the broker is a release of Helm. What only its values can say is an error.
func (i *Installer) lookForHelm(ctx context.Context) error {
	var d appsv1.Deployment
	err := i.Get(ctx, client.ObjectKey{Namespace: BrokerNamespace, Name: BrokerName}, &d)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Deployment %s/%s: %w", BrokerNamespace, BrokerName, err)
	}
	i.ofHelm = err == nil && ofHelm(&d)
	if i.ofHelm && i.options.modesGiven {
		release, namespace := d.Annotations["meta.helm.sh/release-name"], d.Annotations["meta.helm.sh/release-namespace"]
		return requirement("the broker is release %q of Helm in namespace %q, and its modes are values of that: use helm upgrade",
			release, namespace)
	}
	return nil
}

// ofHelm reports whether the daemon's Deployment belongs to a release of Helm.
func ofHelm(d *appsv1.Deployment) bool { return d.Labels[liqo.LabelBrokerManaged] == "Helm" }

// unclaimed returns an error if a peer has put the label of our virtual kubelets into its offer before the broker's rules were there to
// refuse it: its node would seem to have one.
func (i *Installer) unclaimed(ctx context.Context) error {
	_, err := i.eachVirtualNode(ctx, func(n *v09.VirtualNode) ([]change, error) {
		if v09.ClaimsVirtualKubelet(n) {
			return nil, requirement("peer %s gives its node the label %s, which says that Secrets are safe from it: end the peering with it",
				called(v09.StandsFor(n)), liqo.LabelVirtualKubelet)
		}
		return nil, nil
	})
	return err
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
	maps, err := i.namespaceMaps(ctx)
	if err != nil {
		return err
	}
	for n := range maps {
		if m := &maps[n]; v09.Wanted(m, liqoNamespace) {
			return requirement("namespace %s is offered to peer %s, and Liqo's own virtual kubelet would hand it all Secrets there: run "+
				"uninstall, or delete "+
				"the NamespaceOffloading in it", liqoNamespace, m.Name)
		}
	}
	return nil
}

// unused returns an error if namespaces of consumers are here, or if this cluster is something else that would go with the broker, unless
// that does not matter.
func (i *Installer) unused(ctx context.Context, of line) error {
	if i.options.Force {
		return nil
	}
	var namespaces corev1.NamespaceList
	peers, err := i.peers(ctx, of)
	if err := errors.Join(i.List(ctx, &namespaces), err); err != nil {
		return fmt.Errorf("list the namespaces of peers: %w", err)
	}
	var twins []string
	for n := range namespaces.Items {
		name := namespaces.Items[n].Name
		ofLiqo := func(p liqo.Peer) bool { return of.TwinOfLiqo(&namespaces.Items[n], p.Identity) }
		if _, twin := liqo.TwinOf(&namespaces.Items[n]); twin && !slices.ContainsFunc(peers, ofLiqo) {
			twins = append(twins, name)
		}
	}
	if len(twins) > 0 {
		const shown = 5
		return requirement("consumers still use this broker: %d namespaces of theirs are here (%s). Have them take these back; with "+
			"--force, what "+
			"runs goes on, and nobody places new pods", len(twins), strings.Join(twins[:min(shown, len(twins))], ", "))
	}
	return of.mayLose(ctx, i)
}

// noConsumer returns an error if this cluster is the consumer of another broker, which shares the virtual kubelet with the broker.
func (i *Installer) noConsumer(ctx context.Context) error {
	args, err := i.managerArgs(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, flagExtraArgs+"="+flagRemoteIPAM+"=") }) {
		return requirement("this cluster is the consumer of another broker besides: with --force it is none any more, until prepare is run again")
	}
	return nil
}

// findBroker returns the peer whose consumer this cluster is to be. An ID counts for more than a name, which peers choose themselves.
func (i *Installer) findBroker(ctx context.Context, of line) (cluster.Identity, error) {
	peers, err := i.peers(ctx, of)
	if err != nil {
		return cluster.Identity{}, err
	}
	identities := make([]cluster.Identity, len(peers))
	for n := range peers {
		identities[n] = peers[n].Identity
	}
	return choosePeer(identities, i.options.Broker)
}

// errNoPeer is that no peer is meant.
var errNoPeer = errors.New("no peer of this cluster")

// choosePeer returns the one of some peers that is meant.
func choosePeer(peers []cluster.Identity, wanted string) (cluster.Identity, error) {
	var found []cluster.Identity
	for _, peer := range peers {
		if string(peer.ID) == wanted {
			return peer, nil
		}
		if wanted == "" || peer.Name == wanted || strings.HasPrefix(string(peer.ID), wanted) {
			found = append(found, peer)
		}
	}
	switch len(found) {
	case 0:
		return cluster.Identity{}, requirement("%w is the broker (--broker=%q), with which it must be peered. Its peers: %s", errNoPeer, wanted,
			cmp.Or(calledAll(peers), "none"))
	case 1:
		return found[0], nil
	default:
		return cluster.Identity{}, requirement("which peer is the broker? Say --broker with the ID of one of %s", calledAll(found))
	}
}

// calledAll returns what clusters are called, with commas between them.
func calledAll(all []cluster.Identity) string {
	names := make([]string, len(all))
	for n := range all {
		names[n] = called(all[n])
	}
	return strings.Join(names, ", ")
}
