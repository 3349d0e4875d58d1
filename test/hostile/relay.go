// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"crypto/x509/pkix"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Relay is the Liqo of a cluster in the hands of a peer: the authentication service does what is asked by who has the token, and the
// replicator copies what the peer writes in its own cluster. Nothing that it tries changes anything.
type Relay struct {
	// Peer is whose wishes it relays, and Victim another peer.
	Peer, Victim cluster.ID
	// Namespace and Map are those of the NamespaceMap by which the cluster offloads to the peer; empty if it does not.
	Namespace, Map string

	authentication, replicator caller
}

// Connect gives it the access to the API server of the cluster that its Liqo has; config is an administrator's.
func (r *Relay) Connect(config *rest.Config) error {
	return impersonate(config, map[string]*caller{"liqo-auth": &r.authentication, "liqo-crd-replicator": &r.replicator})
}

// Attempts are what the peer tries by it.
func (r *Relay) Attempts() []Attempt {
	attempts := []Attempt{
		{
			"be the controller manager", "the whole cluster", refused,
			r.authentication.certificate(pkix.Name{CommonName: "system:kube-controller-manager"}),
		},
		{"be an administrator", "the whole cluster", refused,
			r.authentication.certificate(pkix.Name{CommonName: string(r.Peer), Organization: []string{"kubeadm:cluster-admins"}})},
		{"be another cluster", "its place", refused, r.authentication.certificate(anotherCluster(string(r.Victim)))},
	}
	if r.Map == "" {
		return attempts
	}
	return append(attempts, Attempt{
		"say that it has made a namespace which nobody offloads to it", "what is in that namespace, with its Secrets", refused, r.claim,
	})
}

// claim tries to have a namespace reflected to the peer.
func (r *Relay) claim(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"currentMapping": map[string]any{
		"kube-system": map[string]any{"remoteNamespace": "loot", "phase": "Accepted"},
	}}})
	if err != nil {
		return err
	}
	is := named("virtualkubelet.liqo.io/v1alpha1", "NamespaceMap", r.Namespace, r.Map)
	return r.replicator.api.Status().Patch(ctx, is, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
}

// anotherCluster is the name that Liqo's certificates give to a cluster.
func anotherCluster(id string) pkix.Name {
	return pkix.Name{CommonName: id, Organization: []string{"liqo.io"}}
}
