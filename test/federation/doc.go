// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package federation makes a federation with a working broker out of a lab with stock Liqo, in the steps that the README
// tells people to take, and looks at what came of it. The demo and the end-to-end tests share it. It knows nothing of how a
// cluster is made, nor of how the broker works.
package federation
