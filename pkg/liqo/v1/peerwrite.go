// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// Bounds of what a peer writes here, besides those of package peerwrite.
const (
	// maxCIDRs is how many networks a peer may have of a kind: each becomes a network of Liqo's IPAM, routes and rules.
	maxCIDRs = 64
	// maxCSR bounds, in bytes, a request for a certificate: that of a key of 16,384 bits has a quarter of it. Liqo and the guard parse it.
	maxCSR = 16 << 10
)

// The resources on which Liqo gives rights to a peer in its tenant namespace: by its certificate, and by that of the peering user with
// which it begins (liqo/deployments/liqo/files/liqo-remote-controlplane-ClusterRole.yaml and
// liqo-peering-user-tenant-ns-ClusterRole.yaml@v1.2.0).
const (
	resourceSlices = "resourceslices." + api.AuthenticationGroup
	renews         = "renews." + api.AuthenticationGroup
	namespaceMaps  = "namespacemaps." + api.OffloadingGroup

	tenants        = "tenants." + api.AuthenticationGroup
	configurations = "configurations." + api.NetworkingGroup
	gatewayServers = "gatewayservers." + api.NetworkingGroup
	gatewayClients = "gatewayclients." + api.NetworkingGroup
	publicKeys     = "publickeies." + api.NetworkingGroup
	ips            = "ips." + api.IPAMGroup

	secrets = "secrets."
)

// peerResource is what is checked of one of these resources.
type peerResource struct {
	// copied tells that the peer's CRD replicator makes the objects, and nobody else.
	copied bool
	// single tells that liqoctl makes one object, which is called like the peer.
	single bool
	// typed is of the type of the objects: what does not fit it, nobody here could read. It is nil for what only Liqo reads.
	typed runtime.Object
	// check is what else is checked of an object that is to be written, and remove of one that is to be deleted; either may be nil.
	check  func(w *peerwrite.Write, peer, own cluster.ID) error
	remove func(w *peerwrite.Write) error
}

func peerResourceOf(kind string) (peerResource, bool) {
	switch kind {
	case resourceSlices:
		return peerResource{copied: true, typed: &api.ResourceSlice{}, check: checkPeersSlice}, true
	case renews:
		return peerResource{copied: true, typed: &api.Renew{}, check: checkPeersRenew}, true
	case namespaceMaps:
		return peerResource{copied: true, typed: &api.NamespaceMap{}, check: checkPeersMap}, true
	case tenants:
		return peerResource{single: true, typed: &api.Tenant{}, check: checkPeersTenant, remove: checkTenantActive}, true
	case configurations:
		return peerResource{single: true, typed: &api.Configuration{}, check: checkPeersConfiguration}, true
	case gatewayServers:
		return peerResource{single: true, check: checkPeersServer}, true
	case gatewayClients:
		return peerResource{single: true, check: checkPeersClient}, true
	case publicKeys:
		return peerResource{single: true}, true
	case ips:
		return peerResource{check: opensNothing}, true
	case secrets:
		return peerResource{check: checkPeersSecret, remove: keepsSecret}, true
	default:
		return peerResource{}, false
	}
}

// peerRules are those of Liqo 1.x.
type peerRules struct{}

// PeerRules implements line.Line.
func (Line) PeerRules() line.PeerRules { return peerRules{} }

// TenantOf implements line.PeerRules.
func (peerRules) TenantOf(namespace *corev1.Namespace) (cluster.ID, bool) { return TenantOf(namespace) }

// peerGroup is the organization in the certificates of control planes and of peering users (OrganizationControlPlaneCSR in
// liqo/pkg/liqo-controller-manager/authentication/csr.go@v1.2.0).
const peerGroup = "liqo.io"

// IsPeer implements line.PeerRules. Besides those that are in Liqo's group, whoever has the certificate of one of the peer's ResourceSlices
// is the peer: that has its ID as its group, and no rights in its tenant namespace.
func (peerRules) IsPeer(w *peerwrite.Write, tenant cluster.ID) bool {
	return w.User == string(tenant) || slices.Contains(w.Groups, peerGroup) || slices.Contains(w.Groups, string(tenant))
}

// Check implements line.PeerRules. What an honest peer writes are copies of its own objects, made by its CRD replicator
// (liqo/internal/crdReplicator/reflection/handler.go@v1.2.0: createRemoteObject, updateRemoteObjectSpec, deleteRemoteObject), and before it
// has a certificate what liqoctl makes as the peering user:
//
//   - the label remote-cluster-id of all of them is the peer: mutateLabelsForRemote writes it, other than in Liqo 0.9, and so does liqoctl
//     (pkg/liqo-controller-manager/networking/forge, and authentication/forge/tenant.go);
//   - never a status: all kinds that are copied are OwnershipShared (internal/crdReplicator/resources/resources.go), for which
//     updateObjectStatus copies the status the other way;
//   - no mark by which Liqo here passes an object over, or gives its owner nothing new, no finalizer, and no owner: the replicator writes
//     what it finds here, but for the spec. It has finalizers on its own side only (ensureLocalFinalizer);
//   - ResourceSlices: who asks whom is who writes here, of which class a webhook has made them before
//     (authentication/localresourceslice-controller);
//   - Renews: spec.consumerClusterID is who asks (authentication/localrenewer-controller);
//   - NamespaceMaps: one, called like this cluster (offloading/virtualnode-controller/namespacemap.go), or the bound on namespaces would be
//     for each of them; spec.desiredMapping names no namespace that is not for peers (pkg/webhooks/namespaceoffloading asks the peer's
//     admins for names);
//   - Tenants: spec.clusterID is who comes; how it is checked, and how far it may go, people here say;
//   - Tenants, Configurations, GatewayServers, GatewayClients and PublicKeys: one of each, called like the peer (networking/forge), unless
//     people here have made it before, which liqoctl goes on with (liqoctl/network/cluster.go);
//   - Configurations: spec.remote has its networks (networking/forge/configuration.go), spec.local those of this cluster, which Liqo here
//     writes (external-network/configuration/configuration_controller.go);
//   - GatewayServers and GatewayClients: the gateway is one of the templates of people here, without annotations, labels, addresses and
//     ports of its own choice (networking/forge/gatewayserver.go, gatewayclient.go);
//   - PublicKeys: those of a gateway go with it (EnsurePublicKey in pkg/liqoctl/network/cluster.go);
//   - IPs: none. Each opens an address of this cluster to all peers (external-network/remapping/ip.go), and liqoctl only reads them;
//   - Secrets: an empty one for the nonce, once (EnsureNonceSecret in authentication/utils/nonce.go). All others in a tenant namespace are
//     Liqo's own: what it was issued and has issued, and the keys of the gateways. Nobody asks the guard about Secrets, which is not to see
//     what is in them: it is the admission policy that does this.
func (peerRules) Check(w *peerwrite.Write, peer, own cluster.ID) error {
	if w.User != string(peer) && !isPeeringUser(w.User, peer) {
		return w.Elsewhere(peer)
	}
	resource, known := peerResourceOf(w.Kind())
	if !known {
		return nil // Of no concern to Liqo.
	}
	// Whose object it is, and that it can be read.
	err := w.CheckObject()
	if err == nil && resource.copied {
		err = w.CheckCopies(peer, own)
	}
	if err == nil {
		err = checkMarks(w, peer)
	}
	if err == nil && resource.single {
		err = checkSingle(w, peer)
	}
	if err == nil && resource.typed != nil && len(w.New) > 0 {
		err = lenient.Check(w.New, resource.typed)
	}
	// What it says.
	switch {
	case err != nil:
		return err
	case len(w.New) == 0 && resource.remove != nil:
		return resource.remove(w)
	case len(w.New) == 0 || resource.check == nil:
		return nil
	default:
		return resource.check(w, peer, own)
	}
}

// peeringUserPrefix begins the names of peering users, and peeringUserSuffix is how many random characters end them (commonNamePeerUser in
// liqo/pkg/liqo-controller-manager/authentication/csr.go@v1.2.0).
const (
	peeringUserPrefix = "liqo-peer-user-"
	peeringUserSuffix = 32
)

// isPeeringUser reports whether a user is one that was made so that a cluster can peer with this one.
func isPeeringUser(user string, peer cluster.ID) bool {
	random, is := strings.CutPrefix(user, peeringUserPrefix+string(peer)+"-")
	return is && len(random) == peeringUserSuffix && strings.Trim(random, "0123456789abcdef") == ""
}

// cordonPrefix begins the annotations on ResourceSlices and Tenants that get nothing new.
const cordonPrefix = api.AnnotationCordon

// checkMarks returns what in the metadata of an object, as it is and as it is to be, no peer writes.
func checkMarks(w *peerwrite.Write, peer cluster.ID) error {
	// Whose it is, before and after.
	var before, after metav1.PartialObjectMetadata
	for _, of := range []struct {
		object []byte
		into   *metav1.PartialObjectMetadata
	}{{w.Old, &before}, {w.New, &after}} {
		if len(of.object) == 0 {
			continue
		}
		if err := peerwrite.Decode(of.object, of.into); err != nil {
			return err
		}
		label := "metadata.labels[" + liqo.LabelRemoteClusterID + "]"
		if err := peerwrite.MustBe(label, of.into.Labels[liqo.LabelRemoteClusterID], peer); err != nil {
			return err
		}
	}
	if len(w.New) == 0 {
		return nil
	}

	// By what Liqo here goes, and what keeps it from going.
	if err := checkHeld(w.Kind(), &before, &after); err != nil {
		return err
	}
	if !sameEntry(before.Labels, after.Labels, api.LabelSkipWebhooks) {
		return fmt.Errorf("metadata.labels[%s] is not the peer's to change: Liqo does not look at what has it", api.LabelSkipWebhooks)
	}
	marks := maps.Clone(before.Annotations)
	if marks == nil {
		marks = map[string]string{}
	}
	maps.Copy(marks, after.Annotations)
	for _, key := range slices.Sorted(maps.Keys(marks)) {
		if strings.HasPrefix(key, cordonPrefix) && !sameEntry(before.Annotations, after.Annotations, key) {
			return fmt.Errorf("metadata.annotations[%s] is not the peer's to change: it says that the peer gets nothing new", key)
		}
	}
	return nil
}

// checkHeld returns that a peer changes on what an object waits before it is gone, or with what it goes: one with a finalizer of the peer
// would stay, with all that it has.
func checkHeld(kind string, before, after *metav1.PartialObjectMetadata) error {
	if !slices.Equal(before.Finalizers, after.Finalizers) {
		return fmt.Errorf("metadata.finalizers is %q, want %q: a peer keeps nothing here from going", after.Finalizers, before.Finalizers)
	}
	was, is := before.OwnerReferences, after.OwnerReferences
	if equality.Semantic.DeepEqual(was, is) || kind == publicKeys && goWithGateway(was, is) {
		return nil
	}
	return errors.New("metadata.ownerReferences is not the peer's to change: it says with what an object goes")
}

// goWithGateway reports whether owners stay, and those that come are gateways: liqoctl makes a PublicKey go with the one that it is for,
// also with another one of the same name.
func goWithGateway(before, after []metav1.OwnerReference) bool {
	for _, was := range before {
		if !slices.ContainsFunc(after, func(is metav1.OwnerReference) bool { return is.Kind == was.Kind && is.Name == was.Name }) {
			return false
		}
	}
	for _, is := range after {
		stays := slices.ContainsFunc(before, func(was metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(was, is) })
		if !stays && !isGateway(&is) {
			return false
		}
	}
	return true
}

// isGateway reports whether an owner is a gateway, which does not wait for what it owns.
func isGateway(owner *metav1.OwnerReference) bool {
	return strings.HasPrefix(owner.APIVersion, api.NetworkingGroup+"/") && (owner.Kind == "GatewayServer" || owner.Kind == "GatewayClient") &&
		(owner.Controller == nil || !*owner.Controller) && (owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion)
}

func sameEntry(a, b map[string]string, key string) bool {
	was, had := a[key]
	is, has := b[key]
	return was == is && had == has
}

func checkPeersSlice(w *peerwrite.Write, peer, own cluster.ID) error {
	var s api.ResourceSlice
	if err := peerwrite.Decode(w.New, &s); err != nil {
		return err
	}
	if n := len(s.Name); n > nodename.MaxOfSlice {
		return fmt.Errorf("metadata.name has %d characters: a certificate has room for %d", n, nodename.MaxOfSlice)
	}
	if err := CheckSlice(&s, peer, own); err != nil {
		return err
	}
	if s.Spec.Class != SliceClass {
		return fmt.Errorf("spec.class is %q, want %q: nobody else answers here", s.Spec.Class, SliceClass)
	}
	return checkCSRSize(s.Spec.CSR)
}

func checkCSRSize(csr []byte) error {
	if n := len(csr); n > maxCSR {
		return fmt.Errorf("spec.csr has %d bytes: a request for a certificate may have up to %d", n, maxCSR)
	}
	return nil
}

func checkPeersRenew(w *peerwrite.Write, peer, _ cluster.ID) error {
	var r api.Renew
	if err := peerwrite.Decode(w.New, &r); err != nil {
		return err
	}
	if err := peerwrite.MustBe("spec.consumerClusterID", r.Spec.ConsumerClusterID, peer); err != nil {
		return err
	}
	return checkCSRSize(r.Spec.CSR)
}

func checkPeersMap(w *peerwrite.Write, peer, own cluster.ID) error {
	if err := w.CheckMap(peer, notForPeers); err != nil || len(w.Old) > 0 {
		return err
	}
	return checkName(w, own)
}

// notForPeers reports whether a namespace is not one that a peer may have made here: one of Kubernetes, of Liqo or of the broker, which
// others trust by its name. Those that are there Liqo gives to nobody.
func notForPeers(namespace string) bool {
	return namespace == corev1.NamespaceDefault || namespace == liqo.DefaultNamespace || strings.HasPrefix(namespace, "kube-") ||
		strings.HasPrefix(namespace, api.TenantNamePrefix+"-") || strings.HasPrefix(namespace, liqo.BrokerManaged)
}

func checkPeersTenant(w *peerwrite.Write, peer, _ cluster.ID) error {
	var before, after api.Tenant
	if err := peerwrite.Decode(w.New, &after); err != nil {
		return err
	}
	if len(w.Old) > 0 {
		if err := peerwrite.Decode(w.Old, &before); err != nil {
			return err
		}
	}
	if policyOf(&after) != policyOf(&before) {
		return fmt.Errorf("spec.authzPolicy is %q, want %q: this cluster says how it knows who comes", policyOf(&after), policyOf(&before))
	}
	if conditionOf(&after) != conditionOf(&before) {
		return fmt.Errorf("spec.tenantCondition is %q, want %q: this cluster says how far a peer may go", conditionOf(&after),
			conditionOf(&before))
	}
	if err := peerwrite.MustBe("spec.clusterID", after.Spec.ClusterID, peer); err != nil {
		return err
	}
	return checkCSRSize(after.Spec.CSR)
}

// policyOf and conditionOf return what Liqo takes the fields of a Tenant for, also where nothing is written.
func policyOf(t *api.Tenant) api.AuthzPolicy {
	if t.Spec.AuthzPolicy == nil || *t.Spec.AuthzPolicy == "" {
		return api.KeysExchange
	}
	return *t.Spec.AuthzPolicy
}

func conditionOf(t *api.Tenant) api.TenantCondition {
	if t.Spec.TenantCondition == "" {
		return api.TenantActive
	}
	return t.Spec.TenantCondition
}

// checkTenantActive keeps who may do less than others from making a Tenant again that may do as much as they.
func checkTenantActive(w *peerwrite.Write) error {
	var t api.Tenant
	if err := peerwrite.Decode(w.Old, &t); err != nil {
		return err
	}
	if condition := conditionOf(&t); condition != api.TenantActive {
		return fmt.Errorf("spec.tenantCondition is %q: only this cluster deletes such a Tenant", condition)
	}
	return nil
}

var errOpens = errors.New("a peer opens no address of this cluster to others")

func opensNothing(*peerwrite.Write, cluster.ID, cluster.ID) error { return errOpens }

// nonceName is the Secret that a peer makes so that Liqo here writes a nonce into it (generateNonceSecretName in
// liqo/pkg/liqo-controller-manager/authentication/forge@v1.2.0).
const nonceName = "liqo-nonce"

// marked is the value of labels and annotations by which something is said to be so.
const marked = "true"

var errSecret = errors.New("a peer makes Secret " + nonceName + ", empty, and has no other to write here: they are this cluster's own")

func keepsSecret(*peerwrite.Write) error { return errSecret }

func checkPeersSecret(w *peerwrite.Write, _, _ cluster.ID) error {
	var s corev1.Secret
	if err := peerwrite.Decode(w.New, &s); err != nil {
		return err
	}
	empty := len(s.Data) == 0 && (s.Type == "" || s.Type == corev1.SecretTypeOpaque)
	if len(w.Old) > 0 || s.Name != nonceName || s.Labels[api.LabelNonce] != marked || !empty {
		return errSecret
	}
	for _, key := range secretMarks() {
		_, label := s.Labels[key]
		_, annotation := s.Annotations[key]
		if key != api.LabelNonce && (label || annotation) {
			return fmt.Errorf("the mark %s is not the peer's to set: Liqo takes a Secret that has it for its own", key)
		}
	}
	return nil
}

// secretMarks returns the labels and annotations by which Liqo takes a Secret for its own, for most of them in whatever namespace it is. In
// v1.2.0 these read them, of liqo/pkg where nothing else is said:
//
//   - the certificate of Liqo's webhooks, and the authority that the API server believes for them (webhooks/secretcontroller);
//   - the credentials with which the CRD replicator, and what asks for an identity, go to a cluster, as a kubeconfig: it also says what to
//     run, and which file to show as a token (liqo/internal/crdReplicator/crdReplicator-operator.go, identityManager/client.go);
//   - the nonce that a cluster has to sign, and the one that this cluster signs (liqo-controller-manager/authentication: tenant-controller,
//     noncecreator-controller, noncesigner-controller);
//   - the keys of a gateway (liqo-controller-manager/networking/external-network/wireguard).
func secretMarks() []string {
	return []string{
		api.LabelWebhook, api.AnnotationWebhookService, api.LabelIdentityType, api.AnnotationRemoteTenant,
		api.LabelNonce, api.LabelSignedNonce, api.LabelGatewayResource,
	}
}

// NodeName implements line.PeerRules. There is none: other than in Liqo 0.9, a provider offers no nodes, and the ResourceSlice of a
// consumer is a node of the consumer's cluster.
func (peerRules) NodeName(*peerwrite.Write, cluster.Identity) (string, error) { return "", nil }

// CheckCopied implements line.PeerRules. From a provider Liqo copies which namespaces it has made, as in Liqo 0.9, and what it grants: with
// labels, which Liqo puts on the virtual node, over its own (MutateVirtualNode in
// liqo/pkg/liqo-controller-manager/offloading/forge@v1.2.0).
func (peerRules) CheckCopied(w *peerwrite.Write) error {
	if err := w.CheckMappings(namespaceMaps); err != nil {
		return err
	}
	if w.Kind() != resourceSlices || w.Subresource != "status" || len(w.New) == 0 {
		return nil
	}
	var s struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Status struct {
			NodeLabels map[string]string `json:"nodeLabels"`
		} `json:"status"`
	}
	if err := peerwrite.Decode(w.New, &s); err != nil {
		return err
	}
	if s.Metadata.Labels[liqo.LabelReplication] != liqo.ReplicationValue {
		return nil // It is this cluster that grants.
	}
	for _, key := range slices.Sorted(maps.Keys(s.Status.NodeLabels)) {
		if !peerwrite.MayClaim(key, s.Status.NodeLabels[key]) && !liqo.IsTold(key) {
			return fmt.Errorf("status.nodeLabels[%s] is reserved: it says what a node is, and not what the cluster is", key)
		}
	}
	return nil
}
