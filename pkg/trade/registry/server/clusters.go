// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// checkClusters returns why an announcement names clusters that are none.
func checkClusters(named []registryv1.Cluster) error {
	if len(named) > registryv1.MaxClusters {
		return fmt.Errorf("%d are more than %d", len(named), registryv1.MaxClusters)
	}
	for i, c := range named {
		if len(validation.IsDNS1123Label(c.ID)) > 0 {
			return fmt.Errorf("%d: the ID %.63q is not a label of DNS", i, c.ID)
		}
		if len(c.Auth) > validation.DNS1123SubdomainMaxLength || !printable(c.Auth) {
			return fmt.Errorf("%d: the host %.60q is none", i, c.Auth)
		}
		if slices.ContainsFunc(named[:i], func(before registryv1.Cluster) bool { return before.ID == c.ID }) {
			return fmt.Errorf("%d: %s is named before", i, c.ID)
		}
	}
	return nil
}

// unclaimed returns the refusal of an announcement with a cluster that another approved party has named before.
func (s *Server) unclaimed(id string, named []registryv1.Cluster) error {
	for _, c := range named {
		if owner := s.parties.owner(c.ID, id); owner != "" {
			return rest.Wrong(http.StatusConflict, "body.announcement.clusters",
				fmt.Errorf(messageClaimed, c.ID, owner))
		}
	}
	return nil
}

// owner returns the approved party besides one that names a cluster; empty if there is none.
func (p *parties) owner(cluster, besides string) string {
	all := p.all.Load()
	if all == nil {
		return ""
	}
	for _, k := range all.byID {
		if k.ID != besides && k.State == registryv1.Approved && slices.Contains(k.clusters, cluster) {
			return k.ID
		}
	}
	return ""
}

// clustersOf returns the IDs of the clusters that an announcement names, which was verified when it was stored.
func clustersOf(announcement string) []string {
	text, err := party.Payload(announcement)
	var said registryv1.Announcement
	if err != nil || json.Unmarshal(text, &said) != nil {
		return nil
	}
	ids := make([]string, 0, len(said.Clusters))
	for _, c := range said.Clusters {
		ids = append(ids, c.ID)
	}
	return ids
}
