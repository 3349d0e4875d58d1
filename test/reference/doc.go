// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference writes docs/reference: metrics, events, conditions, flags and the API, from what the programs have and from the tables
// below it, which say what to do. Its tests fail if a program has what no table knows, if a table knows what no program has, or if an alert
// or a dashboard asks for it.
package reference
