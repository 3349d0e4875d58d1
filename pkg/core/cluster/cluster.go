// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster holds the words by which every other package names a cluster
// of the federation.
//
// It knows nothing of Liqo, of Kubernetes or of the network.
package cluster

// ID is the stable identifier of a cluster, unique in the federation. Liqo
// makes it a UUID and puts it into the common name of the certificates with
// which a cluster authenticates at its peers. The zero value names no cluster.
type ID string

// SetOf returns a set that has some clusters.
func SetOf(ids []ID) map[ID]bool {
	set := make(map[ID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// Identity is what a cluster is called: by programs (ID) and by people (Name).
// Names need not be unique; only the ID may be used as a key.
type Identity struct {
	ID   ID     `json:"id"`
	Name string `json:"name"`
}

// String returns the name and the ID, as shown in messages to people.
func (i Identity) String() string {
	if i.Name == "" {
		return string(i.ID)
	}
	return i.Name + " (" + string(i.ID) + ")"
}
