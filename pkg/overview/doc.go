// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview puts the objects of a broker into what people read at a glance: tables, a summary with advice, where pods run,
// and why they run there. It works on values, with the time as an argument, and what it returns for a table or a sentence has no
// control characters: clusters choose their names themselves.
//
// It does not know where the objects come from, nor how a terminal or a script is written to.
package overview
