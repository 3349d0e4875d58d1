// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// ID is by which a watch goes on from the view.
func (v *View) ID() string { return fmt.Sprintf("%s.%d", v.Epoch, v.Revision) }

// parseID returns the era and the revision of an ID, and whether it is one.
func parseID(id string) (era string, revision int64, ok bool) {
	at := strings.LastIndexByte(id, '.')
	if at < 0 {
		return "", 0, false
	}
	revision, err := strconv.ParseInt(id[at+1:], 10, 64)
	return id[:at], revision, err == nil && revision >= 0
}

// Covers reports whether a watcher that has an ID can go on from there in this view. If not, the ID may be of what this view has not come
// to yet.
func (v *View) Covers(id string) bool {
	era, revision, ok := parseID(id)
	return ok && v.covers(era, revision)
}

// covers reports whether a revision of an era is of the history of this view, and what has gone since is known.
func (v *View) covers(era string, revision int64) bool {
	i := slices.IndexFunc(v.eras, func(e Era) bool { return e.Name == era })
	return i >= 0 && revision >= v.floor && revision <= v.Revision && revision >= v.eras[i].From &&
		(i+1 == len(v.eras) || revision < v.eras[i+1].From)
}

// bookmark appends an event that says how far a watcher has come. That of a snapshot is the beginning: who is cut off before the end begins
// again.
func (v *View) bookmark(to []byte, name string) []byte {
	e := eventstream.Event{Name: name, Data: fmt.Appendf(nil, `{"revision":%d}`, v.Revision)}
	if name != registryv1.EventSnapshot {
		e.ID = v.ID()
	}
	return eventstream.Append(to, e)
}
