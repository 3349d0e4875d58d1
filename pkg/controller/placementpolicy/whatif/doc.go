// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif tries placement policies that are only texts yet: it reads them, says what is wrong with them and where, what they would
// decide, and what of that is another thing than today.
//
// It does not know who wants to know, nor how policies are applied. It writes nothing.
package whatif
