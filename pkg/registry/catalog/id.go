// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
)

// ID is by which a watch goes on from the view.
func (v *View) ID() string { return fmt.Sprintf("%s.%d", v.Epoch, v.Revision) }

// parseID returns the revision of an ID of this history.
func (v *View) parseID(id string) (revision int64, ok bool) {
	number, ours := strings.CutPrefix(id, v.Epoch+".")
	revision, err := strconv.ParseInt(number, 10, 64)
	return revision, ours && err == nil && revision >= 0
}

// bookmark appends an event that says how far a watcher has come. That of a snapshot is the beginning: who is cut off before the end begins anew.
func (v *View) bookmark(to []byte, name string) []byte {
	e := eventstream.Event{Name: name, Data: fmt.Appendf(nil, `{"revision":%d}`, v.Revision)}
	if name != registryv1.EventSnapshot {
		e.ID = v.ID()
	}
	return eventstream.Append(to, e)
}
