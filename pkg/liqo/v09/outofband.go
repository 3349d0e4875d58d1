// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	"github.com/liqotech/liqo/pkg/discovery"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// What follows is what liqoctl peer out-of-band and unpeer out-of-band do (liqo/pkg/liqoctl/{peeroob,unpeeroob}/handler.go@v0.9.4), as
// values.

const (
	// AuthTokenName is the Secret with the token by which any cluster authenticates here. It is one for all
	// (liqo/pkg/auth/tokenutils.go@v0.9.4, a package that brings a client for all of Kubernetes).
	AuthTokenName = "auth-token"
	// authTokenBytes is how long a token is.
	authTokenBytes = 64
	// authTokenKey is where the token is in the Secret, and in that of a peer's token.
	authTokenKey = "token"
)

// ForeignClusterOf returns the foreign cluster of a cluster; nil if this one does not know it.
func ForeignClusterOf(ctx context.Context, reader client.Reader, id cluster.ID) (*ForeignCluster, error) {
	var all ForeignClusterList
	if err := reader.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list foreign clusters: %w", err)
	}
	for i := range all.Items {
		if Identity(&all.Items[i]).ID == id {
			return &all.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // That there is none is an answer.
}

// maxClusterName is how long the name of a ForeignCluster can be: Liqo makes a namespace of it, with 19 characters of its own.
const maxClusterName = 44

// GivenName returns a name for a cluster whose own name is too long, or that of another cluster already.
func GivenName(of cluster.Identity) string {
	const hash = len("-012345")
	return UniqueName(cluster.Identity{ID: of.ID, Name: strings.TrimRight(of.Name[:min(len(of.Name), maxClusterName-hash)], "-")})
}

// NewForeignCluster returns a foreign cluster that may consume nothing of ours and provides nothing yet, peered out of band. It has the
// cluster's name, or a given one if that is too long: also in its identity, since Liqo's controller looks the ForeignCluster up by that
// when it asks whether the API server answers (pkg/liqo-controller-manager/foreign-cluster-operator/apiserverchecker.go@v0.9.4).
func NewForeignCluster(of cluster.Identity, authURL string) *ForeignCluster {
	if len(of.Name) > maxClusterName {
		of.Name = GivenName(of)
	}
	return &ForeignCluster{
		ObjectMeta: metav1.ObjectMeta{Name: of.Name, Labels: map[string]string{discovery.ClusterIDLabel: string(of.ID)}},
		Spec: discoveryv1alpha1.ForeignClusterSpec{
			PeeringType:            discoveryv1alpha1.PeeringTypeOutOfBand,
			ClusterIdentity:        discoveryv1alpha1.ClusterIdentity{ClusterID: string(of.ID), ClusterName: of.Name},
			ForeignAuthURL:         authURL,
			OutgoingPeeringEnabled: discoveryv1alpha1.PeeringEnabledAuto,
			// Auto would be the flag of Liqo's controller manager, which is true in its chart: the cluster would be given a part of this one
			// (AllowIncomingPeering in liqo/pkg/utils/foreignCluster/incomingPeering.go@v0.9.4).
			IncomingPeeringEnabled: discoveryv1alpha1.PeeringEnabledNo,
			// Liqo's authentication service has a certificate that nobody signs.
			InsecureSkipTLSVerify: new(true),
		},
	}
}

// CameUnasked reports whether Liqo has made a foreign cluster because another one asked for resources, and nobody here had named it
// (liqo/pkg/liqo-controller-manager/resource-request-controller/utils.go@v0.9.4).
func CameUnasked(fc *ForeignCluster) bool {
	return fc.Labels[discovery.DiscoveryTypeLabel] == string(discovery.IncomingPeeringDiscovery)
}

// Consume has Liqo begin, or go on with, the peering over which a foreign cluster provides. An empty URL leaves the one that Liqo knows.
func Consume(fc *ForeignCluster, authURL string) {
	fc.Spec.ForeignAuthURL = cmp.Or(authURL, fc.Spec.ForeignAuthURL)
	fc.Spec.OutgoingPeeringEnabled = discoveryv1alpha1.PeeringEnabledYes
}

// Consumes reports whether Liqo is told to have a foreign cluster provide.
func Consumes(fc *ForeignCluster) bool {
	return fc.Spec.OutgoingPeeringEnabled == discoveryv1alpha1.PeeringEnabledYes
}

// ConsumeNoMore has Liqo end the peering over which a foreign cluster provides.
func ConsumeNoMore(fc *ForeignCluster) {
	fc.Spec.OutgoingPeeringEnabled = discoveryv1alpha1.PeeringEnabledNo
}

// Provide has Liqo answer a foreign cluster that wants to consume.
func Provide(fc *ForeignCluster) {
	fc.Spec.IncomingPeeringEnabled = discoveryv1alpha1.PeeringEnabledYes
}

// Provides reports whether Liqo is told to answer a foreign cluster that wants to consume.
func Provides(fc *ForeignCluster) bool {
	return fc.Spec.IncomingPeeringEnabled == discoveryv1alpha1.PeeringEnabledYes
}

// Clusters returns the clusters that this one knows, and whether Liqo is told to answer them.
func Clusters(ctx context.Context, reader client.Reader) (map[cluster.ID]bool, error) {
	var all ForeignClusterList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the foreign clusters: %w", err)
	}
	known := make(map[cluster.ID]bool, len(all.Items))
	for i := range all.Items {
		id := Identity(&all.Items[i]).ID
		known[id] = known[id] || Provides(&all.Items[i])
	}
	return known, nil
}

// ProvideNoMore has Liqo offer nothing to a foreign cluster, and end the peering over which it consumes.
func ProvideNoMore(fc *ForeignCluster) {
	fc.Spec.IncomingPeeringEnabled = discoveryv1alpha1.PeeringEnabledNo
}

// Token returns the token in a Secret of AuthTokenName; empty if it has none.
func Token(secret *corev1.Secret) string { return string(secret.Data[authTokenKey]) }

// ReplaceToken replaces the token in a Secret of AuthTokenName: the one before opens nothing any more.
func ReplaceToken(secret *corev1.Secret) {
	token := make([]byte, authTokenBytes)
	_, _ = rand.Read(token) // It never fails.
	secret.Data = map[string][]byte{authTokenKey: hex.AppendEncode(nil, token)}
}

// PeerToken returns the Secret by which Liqo authenticates at a peer; namespace is where Liqo runs
// (liqo/pkg/utils/authenticationtoken/tokensecret.go@v0.9.4).
func PeerToken(namespace string, peer cluster.ID, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "remote-token-" + string(peer),
			Labels: map[string]string{discovery.ClusterIDLabel: string(peer), discovery.AuthTokenLabel: ""},
		},
		Data: map[string][]byte{authTokenKey: []byte(token)},
	}
}

// AsksForResources reports whether a cluster asks this one for resources: there is a ResourceRequest of its own, in its tenant namespace.
func AsksForResources(ctx context.Context, reader client.Reader, fc *ForeignCluster) (bool, error) {
	namespace := TenantNamespace(fc)
	if namespace == "" {
		return false, nil
	}
	var requests discoveryv1alpha1.ResourceRequestList
	if err := reader.List(ctx, &requests, client.InNamespace(namespace),
		client.MatchingLabels{liqo.LabelReplicated: liqo.ReplicationValue}); err != nil {
		return false, fmt.Errorf("list the resource requests in namespace %s: %w", namespace, err)
	}
	return len(requests.Items) > 0, nil
}

// MapsNamespaces reports whether namespaces are offloaded to a cluster, or what is written down of them is not removed yet.
func MapsNamespaces(ctx context.Context, reader client.Reader, fc *ForeignCluster) (bool, error) {
	namespace := TenantNamespace(fc)
	if namespace == "" {
		return false, nil
	}
	var maps NamespaceMapList
	if err := reader.List(ctx, &maps, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("list the namespace maps in namespace %s: %w", namespace, err)
	}
	return len(maps.Items) > 0, nil
}

// PeerWith has Liqo begin, or go on with, the peering over which a foreign cluster provides, as the command that `liqoctl generate
// peer-command` prints does. What makes this cluster provide in turn is left as it is. A foreign cluster that is peered in band is not to
// be peered so.
func PeerWith(fc *ForeignCluster, authURL string) {
	fc.Spec.PeeringType = discoveryv1alpha1.PeeringTypeOutOfBand
	fc.Spec.ForeignProxyURL = ""
	if fc.Spec.InsecureSkipTLSVerify == nil {
		fc.Spec.InsecureSkipTLSVerify = new(true)
	}
	Consume(fc, authURL)
}

// Hindrances says which of the parts that a peering needs with a foreign cluster are not there yet, as Liqo says it; empty if all are.
func Hindrances(fc *ForeignCluster) string {
	there := []discoveryv1alpha1.PeeringConditionStatusType{
		discoveryv1alpha1.PeeringConditionStatusEstablished, discoveryv1alpha1.PeeringConditionStatusSuccess,
		discoveryv1alpha1.PeeringConditionStatusExternal,
	}
	var missing []string
	for _, c := range fc.Status.PeeringConditions {
		if c.Type == discoveryv1alpha1.IncomingPeeringCondition || c.Type == discoveryv1alpha1.OutgoingPeeringCondition {
			continue // They are the result.
		}
		if slices.Contains(there, c.Status) {
			continue
		}
		missing = append(missing, fmt.Sprintf("%s is %s: %s", c.Type, c.Status, cmp.Or(c.Message, c.Reason, "nothing is said why")))
	}
	return strings.Join(missing, "; ")
}
