// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v09 is where the API types and wire formats of Liqo 0.9 enter this project: the
// rest says what it wants to know of them in words of its own. Liqo itself is imported only
// by the virtual kubelet, which is composed of Liqo's packages, and by tests.
//
// It follows Liqo v0.9.4. It reads and forges values, and does not know what is decided
// by them.
package v09
