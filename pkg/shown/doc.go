// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shown reads of a broker's cluster what is shown to people and programs: what is of each kind, and when that may have become
// otherwise. The API of the daemon and the page of the plugin show the same.
//
// It does not know to whom it is shown, and by what.
package shown
