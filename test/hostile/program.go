// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Program is who has taken over a program of a cluster that trades: it has the token of the
// program's service account, and tries what the program must not be able to do. Nothing that
// it tries changes anything.
type Program struct {
	// Secret is one in namespace liqo that is no token of a peer.
	Secret string
	// Node is one of the cluster's own nodes, and VirtualNode one that is virtual.
	Node, VirtualNode string
	// Twin is the namespace of a peer, and Peer another cluster.
	Twin, Peer string

	caller
}

// Connect gives it its access to the API server of the cluster.
func (p *Program) Connect(config *rest.Config, token string) error {
	p.DryRun = true
	own := &rest.Config{Host: config.Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}}
	if err := p.connect(own); err != nil {
		return fmt.Errorf("reach the API server of a cluster that trades: %w", err)
	}
	return nil
}

const (
	admission = "admissionregistration.k8s.io/v1"
	webhooks  = "ValidatingWebhookConfiguration"
	binding   = "ValidatingAdmissionPolicyBinding"
	trading   = "brokering.liqo.io/v1alpha1"

	// loose is what there is without a guard.
	loose = "peers out of bounds"
)

// Connector are the attempts of who has the connector.
func (p *Program) Connector() []Attempt {
	const onlyTokens = "the connector may write the tokens of peers, and no other Secret"
	return []Attempt{
		{"read all Secrets of namespace liqo", "those whose names it does not know", NoRight, p.list("v1", "Secret", "liqo")},
		{"read a Secret of another namespace", "the keys of other programs", NoRight, p.get("v1", "Secret", "kube-system", "any")},
		{
			"make a Secret in namespace liqo that is no token", "an identity of Liqo's of its own making", onlyTokens,
			p.secret("hostile", corev1.SecretTypeOpaque),
		},
		{"change a Secret of namespace liqo that is no token", "the certificates that Liqo shows", onlyTokens, p.changeSecret},
		{
			"remove a Secret of namespace liqo that is no token", "a Liqo that does not run", onlyTokens, p.delete("v1", "Secret", "liqo", p.Secret),
		},
		{"have Kubernetes put a token of Liqo's into a Secret", "the rights of Liqo",
			"the connector may write no Secret that is more than a token", p.secret("remote-token-hostile", corev1.SecretTypeServiceAccountToken)},
		{"ask for a token of Liqo's", "the rights of Liqo", NoRight, p.token},
		{"give Liqo's gateway another image", "root on its node", "the connector may restart Liqo's gateway, and change nothing else of it",
			p.patch("apps/v1", "Deployment", "liqo", "liqo-gateway",
				`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "hostile"}]`)},
		{"change Liqo's controller manager", "the whole cluster for a peer", NoRight,
			p.patch("apps/v1", "Deployment", "liqo", "liqo-controller-manager",
				`[{"op": "remove", "path": "/spec/template/spec/containers/0/args/0"}]`)},
		{"close a node that is not virtual", "no room for the cluster's own pods", "the node is not virtual",
			p.patch("v1", "Node", "", p.Node, `[{"op": "add", "path": "/spec/unschedulable", "value": true}]`)},
		{"label a virtual node", "pods that were not to go there", "the connector may close nodes to new pods, but not change their labels",
			p.patch("v1", "Node", "", p.VirtualNode, `[{"op": "add", "path": "/metadata/labels/hostile", "value": "true"}]`)},
		{"make a ForeignCluster as people do", "a peering that no contract ends", "the ForeignCluster was made by people, and not by a contract",
			p.create("discovery.liqo.io/v1alpha1", "ForeignCluster", "", nil, map[string]any{
				"clusterIdentity": map[string]any{"clusterID": p.Peer, "clusterName": "hostile"}, "foreignAuthUrl": "https://hostile.example.org",
			})},
		{"ask for the certificate of another cluster", "its place", refused, p.certificate(anotherCluster(p.Peer))},
		{"create a pod", "the Secrets of its namespace, or its node", NoRight, p.create("v1", "Pod", "liqo", nil, map[string]any{})},
		{"remove a pod past its disruption budget", "workloads that do not run", NoRight, p.delete("v1", "Pod", "liqo", "any")},
		{"offload a namespace", "its pods and Secrets at a peer", NoRight,
			p.create("offloading.liqo.io/v1alpha1", "NamespaceOffloading", "default", nil, map[string]any{})},
		{"take the guard's webhooks away", loose, NoRight, p.delete(admission, webhooks, "", "liqo-broker-guard")},
		{"change the guard's webhooks", loose, NoRight,
			p.patch(admission, webhooks, "", "liqo-broker-guard", `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`)},
		{
			"take the guard's policies away", "itself out of bounds", NoRight,
			p.delete(admission, binding, "", "connector-secrets.brokering.liqo.io"),
		},
		{"change the guard", loose, NoRight,
			p.patch("apps/v1", "Deployment", "liqo-broker-guard", "liqo-broker-guard", `[{"op": "replace", "path": "/spec/replicas", "value": 0}]`)},
		{"give itself a role", "everything", NoRight, p.create("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", nil, nil)},
		{"offer in the owner's name", "contracts that the owner does not want", NoRight, p.create(trading, "Offer", "", nil, map[string]any{})},
		{"follow another registry", "sellers that the owner does not know", NoRight, p.create(trading, "Registry", "", nil, map[string]any{})},
	}
}

// Guard are the attempts of who has the guard.
func (p *Program) Guard() []Attempt {
	const onlyBundle, notPeers = "the guard may change only the caBundle of webhooks", "the namespace is not a peer's"
	nothing := map[string]any{"hard": map[string]any{"pods": "0"}}
	return []Attempt{
		{"read all Secrets of namespace liqo", "those whose names it does not know", NoRight, p.list("v1", "Secret", "liqo")},
		{
			"read a Secret of namespace liqo that is not Liqo's token", "the identities of all peers", NoRight,
			p.get("v1", "Secret", "liqo", p.Secret),
		},
		{"read the key of the party", "its contracts", NoRight, p.get("v1", "Secret", "liqo-broker-connector", "liqo-broker-connector")},
		{"make a Secret in namespace liqo", "an identity of Liqo's of its own making", NoRight, p.secret("hostile", corev1.SecretTypeOpaque)},
		{
			"bound a namespace that is no peer's", "workloads that do not run", notPeers,
			p.own("v1", "ResourceQuota", "default", "liqo-broker", nothing),
		},
		{"fence a namespace that is no peer's", "workloads that nobody reaches", notPeers,
			p.own("networking.k8s.io/v1", "NetworkPolicy", "default", "liqo-broker", map[string]any{"podSelector": map[string]any{}})},
		{
			"make another quota in a peer's namespace", "a peer that cannot work", "the object is not the guard's",
			p.own("v1", "ResourceQuota", p.Twin, "hostile", nothing),
		},
		{"have its webhooks let pass what they cannot be asked about", loose, onlyBundle,
			p.patch(admission, webhooks, "", "liqo-broker-guard", `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`)},
		{"have the API server ask somebody else", "all that peers write", onlyBundle,
			p.patch(admission, webhooks, "", "liqo-broker-guard",
				`[{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "hostile"}]`)},
		{"take its webhooks away", loose, NoRight, p.delete(admission, webhooks, "", "liqo-broker-guard")},
		{"take its policies away", "itself out of bounds", NoRight, p.delete(admission, binding, "", "guard.brokering.liqo.io")},
		{
			"change the webhooks of others", "all that anybody writes", NoRight,
			p.patch(admission, webhooks, "", "any", `[{"op": "remove", "path": "/webhooks"}]`),
		},
		{"create a pod", "the Secrets of its namespace, or its node", NoRight, p.create("v1", "Pod", "liqo-broker-guard", nil, map[string]any{})},
		{
			"close a node", "no room for pods", NoRight,
			p.patch("v1", "Node", "", p.Node, `[{"op": "add", "path": "/spec/unschedulable", "value": true}]`),
		},
		{"lead a tunnel elsewhere", "what goes to a peer", NoRight,
			p.patch("net.liqo.io/v1alpha1", "TunnelEndpoint", "liqo", "any", `[{"op": "remove", "path": "/spec"}]`)},
		{"ask for the certificate of another cluster", "its place", NoRight, p.certificate(anotherCluster(p.Peer))},
		{"give itself a role", "everything", NoRight, p.create("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", nil, nil)},
	}
}

// get tries to read an object.
func (p *Program) get(apiVersion, kind, namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return p.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, named(apiVersion, kind, namespace, ""))
	}
}

// patch tries to change an object by a JSON patch.
func (p *Program) patch(apiVersion, kind, namespace, name, patch string) func(context.Context) error {
	return func(ctx context.Context) error {
		return p.api.Patch(ctx, named(apiVersion, kind, namespace, name), client.RawPatch(types.JSONPatchType, []byte(patch)), client.DryRunAll)
	}
}

// own tries to create an object with a name.
func (p *Program) own(apiVersion, kind, namespace, name string, spec map[string]any) func(context.Context) error {
	return func(ctx context.Context) error {
		object := named(apiVersion, kind, namespace, name)
		object.Object["spec"] = spec
		return p.tryCreate(ctx, object)
	}
}

// secret tries to create a Secret in namespace liqo: one for a token of a service account is for Liqo's.
func (p *Program) secret(name string, kind corev1.SecretType) func(context.Context) error {
	return func(ctx context.Context) error {
		return p.api.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "liqo", Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "liqo-controller-manager"},
			},
			Type: kind,
		}, client.DryRunAll)
	}
}

// changeSecret tries to change the Secret.
func (p *Program) changeSecret(ctx context.Context) error {
	secret := named("v1", "Secret", "liqo", p.Secret)
	if err := p.api.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(secret.Object, "aG9zdGlsZQ==", "data", "hostile"); err != nil {
		return err
	}
	return p.api.Update(ctx, secret, client.DryRunAll)
}

// token asks for a token of Liqo's controller manager.
func (p *Program) token(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-controller-manager"}}
	return p.api.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{}, client.DryRunAll)
}
