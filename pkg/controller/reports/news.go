// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// news is what people were told of clusters, so that they are told once. The zero value was told nothing. It may be used concurrently.
type news struct {
	mu   sync.Mutex
	said map[cluster.ID]string
}

// isNews remembers what there is to tell of a cluster, nothing if it is empty, and reports whether people are to be told.
func (n *news) isNews(of cluster.ID, what string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if what == "" {
		delete(n.said, of)
		return false
	}
	if n.said == nil {
		n.said = map[cluster.ID]string{}
	}
	was := n.said[of]
	n.said[of] = what
	return was != what
}
