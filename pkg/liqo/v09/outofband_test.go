// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09_test

import (
	"strings"
	"testing"

	foreigncluster "github.com/liqotech/liqo/pkg/utils/foreignCluster"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// TestNewForeignCluster names a ForeignCluster as Liqo looks it up, and such that Liqo can make longer names of it.
func TestNewForeignCluster(t *testing.T) {
	for _, of := range []cluster.Identity{
		{ID: "1", Name: "edge"}, {ID: "1", Name: strings.Repeat("a", 63)},
		{ID: "3", Name: strings.Repeat("a", 36) + "-" + strings.Repeat("b", 20)},
	} {
		fc := v09.NewForeignCluster(of, "https://auth.example")
		if is := v09.Identity(fc); is.Name != fc.Name || is.ID != of.ID || len(fc.Name) > 44 || !strings.HasPrefix(fc.Name, of.Name[:4]) {
			t.Errorf("%s is named %s, and the identity in it is %s", of.Name, fc.Name, is)
		}
	}
}

// TestGivenName tells clusters of one name apart.
func TestGivenName(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range []cluster.Identity{
		{ID: "1", Name: "edge"}, {ID: "2", Name: "edge"}, {ID: "1", Name: strings.Repeat("a", 63)},
		{ID: "3", Name: strings.Repeat("a", 36) + "-b"},
	} {
		name := v09.GivenName(of)
		if seen[name] || len(name) > 44 || strings.Contains(name, "--") || !strings.HasPrefix(name, of.Name[:4]) {
			t.Errorf("%s with the ID %s is given %s", of.Name, of.ID, name)
		}
		seen[name] = true
	}
}

// TestLetIn lets nobody consume here of whom this cluster buys, whatever the flag of Liqo's controller manager says.
func TestLetIn(t *testing.T) {
	fc := v09.NewForeignCluster(cluster.Identity{ID: "2222", Name: "seller"}, "https://192.0.2.1")
	for _, flag := range []bool{true, false} {
		if foreigncluster.AllowIncomingPeering(fc, flag) {
			t.Errorf("with --enable-incoming-peering=%t the seller may consume", flag)
		}
	}
	if v09.Provide(fc); !foreigncluster.AllowIncomingPeering(fc, false) {
		t.Error("who has bought may not consume")
	}
}
