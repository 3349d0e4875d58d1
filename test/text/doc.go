// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text prints the sentences of the programs and what kubectl shows of the API into testdata, so that a change of the user
// interface is reviewed as what it is. It reads sources and CRDs, and knows nothing of when a sentence is said.
package text
