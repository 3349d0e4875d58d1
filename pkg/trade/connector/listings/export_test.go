// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package listings

// Used returns about how many bytes of memory what a registry has shown takes: what it shows together with others counts for each.
func (l *Listings) Used(registry string) int {
	if u := l.used[registry]; u != nil {
		return u.all
	}
	return 0
}
