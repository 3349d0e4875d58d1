// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peerwrite has what an honest peer does not write into its tenant namespace here, as far as that is the same with every line of
// Liqo's versions.
//
// It knows neither which kinds a line exchanges nor how it calls peers: packages v09 and v1 do.
package peerwrite

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// MaxObject bounds, in bytes, what a peer writes here, and MaxMappings how many namespaces it offloads: everything that it writes is kept
// in memory, and each namespace becomes several objects.
const (
	MaxObject   = 256 << 10
	MaxMappings = 1000
)

// Write is what somebody asks the API server to write into a tenant namespace.
type Write struct {
	// User is who asks, and Groups are in which groups.
	User   string
	Groups []string
	// Group, Resource and Subresource say what.
	Group, Resource, Subresource string
	// Old is the object as it is, New as it is to be, in JSON. Old is empty if the object is to be created, New if it is to be deleted.
	Old, New []byte
}

// Kind returns what a write is about: a resource and its group, with a dot between.
func (w *Write) Kind() string { return w.Resource + "." + w.Group }

// Elsewhere returns that somebody writes in the tenant namespace of another peer.
func (w *Write) Elsewhere(peer cluster.ID) error {
	return fmt.Errorf("%q writes in the tenant namespace of %q", w.User, peer)
}

// CheckObject returns why no peer writes what there is to be written, whatever it is: a status, or more than [MaxObject].
func (w *Write) CheckObject() error {
	if w.Subresource != "" {
		return fmt.Errorf("a peer must not write the %s of %s: only this cluster does", w.Subresource, w.Resource)
	}
	if size := len(w.New); size > MaxObject {
		return fmt.Errorf("the object has %d bytes: a peer may write up to %d", size, MaxObject)
	}
	return nil
}

// CheckCopies returns why an object, as it is and as it is to be, is not the copy of one of a peer's own objects, as [Write.CheckObject]
// and the labels say by which Liqo knows whose copy it is.
func (w *Write) CheckCopies(peer, own cluster.ID) error {
	if err := w.CheckObject(); err != nil {
		return err
	}
	for _, object := range [][]byte{w.Old, w.New} {
		if len(object) == 0 {
			continue
		}
		if err := checkCopy(object, peer, own); err != nil {
			return err
		}
	}
	return nil
}

func checkCopy(object []byte, peer, own cluster.ID) error {
	var o metav1.PartialObjectMetadata
	if err := Decode(object, &o); err != nil {
		return err
	}
	for _, label := range []struct{ key, want string }{
		{liqo.LabelReplicated, liqo.ReplicationValue}, {liqo.LabelOrigin, string(peer)}, {liqo.LabelDestination, string(own)},
	} {
		if got := o.Labels[label.key]; got != label.want {
			return fmt.Errorf("metadata.labels[%s] is %q, want %q", label.key, got, label.want)
		}
	}
	if got := o.Labels[liqo.LabelReplication]; got == liqo.ReplicationValue {
		return fmt.Errorf("metadata.labels[%s] is %q: only this cluster's own objects have that", liqo.LabelReplication, got)
	}
	return nil
}

// namespaceMap is the part of a NamespaceMap that is checked. It is the same in all lines.
type namespaceMap struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		DesiredMapping map[string]string `json:"desiredMapping"`
	} `json:"spec"`
	Status struct {
		CurrentMapping map[string]struct {
			RemoteNamespace string `json:"remoteNamespace"`
			Phase           string `json:"phase"`
		} `json:"currentMapping"`
	} `json:"status"`
}

// accepted is the phase of a namespace that the other cluster has made.
const accepted = "Accepted"

// CheckMap returns what of the NamespaceMap that a peer writes cannot be: more namespaces than [MaxMappings], the name of a namespace that
// is not for peers, or that it is of another cluster than of.
func (w *Write) CheckMap(of cluster.ID, notForPeers func(namespace string) bool) error {
	var namespaces namespaceMap
	if err := Decode(w.New, &namespaces); err != nil {
		return err
	}
	if n := len(namespaces.Spec.DesiredMapping); n > MaxMappings {
		return fmt.Errorf("spec.desiredMapping has %d namespaces: a peer may offload up to %d", n, MaxMappings)
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces.Spec.DesiredMapping)) {
		if to := namespaces.Spec.DesiredMapping[name]; notForPeers(to) {
			return fmt.Errorf("spec.desiredMapping[%s] is %q: only this cluster itself creates namespaces of that name", name, to)
		}
	}
	return MustBe("metadata.labels["+liqo.LabelRemoteClusterID+"]", namespaces.Metadata.Labels[liqo.LabelRemoteClusterID], of)
}

// CheckMappings returns what this cluster's CRD replicator must not copy from a peer into the status of one of this cluster's
// NamespaceMaps, whose kind is given as [Write.Kind] returns it: a namespace that the peer says it has made, and this cluster did not ask
// for. Liqo's virtual kubelet would reflect it. For any other write there is nothing to return.
//
// Mappings that the peer does not call Accepted pass: nothing is reflected by them, and one that this cluster has taken back stays as
// Terminating for as long as the peer removes the namespace. So what is refused is repaired by the peer's next step: the replicator tells
// it of the changed spec before it copies the status.
func (w *Write) CheckMappings(kind string) error {
	if w.Kind() != kind || w.Subresource != "status" || len(w.New) == 0 {
		return nil
	}
	var namespaces namespaceMap
	if err := Decode(w.New, &namespaces); err != nil {
		return err
	}
	if namespaces.Metadata.Labels[liqo.LabelReplication] != liqo.ReplicationValue {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces.Status.CurrentMapping)) {
		current := namespaces.Status.CurrentMapping[name]
		wanted, is := namespaces.Spec.DesiredMapping[name]
		if current.Phase == accepted && (!is || wanted != current.RemoteNamespace) {
			return fmt.Errorf("status.currentMapping[%s] leads to %q, which spec.desiredMapping does not ask for", name, current.RemoteNamespace)
		}
	}
	return nil
}

// labelDistribution is what liqoctl puts onto what a cluster offers: which Kubernetes it runs (ProviderClusterLabel in liqo/pkg/consts).
const labelDistribution = "liqo.io/provider"

// MayClaim reports whether a peer may put a label on what it offers, and so on its virtual node here: what is not reserved, what liqoctl
// puts there (liqo/pkg/liqoctl/install/handler.go), and what a broker says of a provider.
func MayClaim(key, value string) bool {
	switch key {
	case labelDistribution, liqo.LabelCarbon, liqo.LabelProvider:
		return true
	case liqo.LabelNodeType:
		return value == liqo.NodeTypeVirtual
	default:
		return !liqo.IsReserved(key)
	}
}

// MustBe returns an error unless a field has the ID of a cluster.
func MustBe(field, got string, want cluster.ID) error {
	if got != string(want) {
		return fmt.Errorf("%s is %q, want %q", field, got, want)
	}
	return nil
}

// Decode reads a part of an object. Its error names the field that has another type.
func Decode(object []byte, into any) error {
	var wrong *json.UnmarshalTypeError
	err := utiljson.Unmarshal(object, into)
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s has the wrong type: %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	return nil
}
