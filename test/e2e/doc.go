// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e walks the journeys of a user on real clusters. Its tests are built with the tag `e2e`; they use a federation that
// `make demo` left up, or bring one up and remove it:
//
//	make test-e2e
//
// With LIQO=1.2 that has Liqo 1.2. A federation with another line of Liqo than make says stays as it is, and no journey begins.
//
// When a journey fails, the federation stays as it is, and test/journeys runs the journey on it once more.
//
// They know what a user sees: commands, API objects and traffic. They know nothing of how the broker works. Which of them run side by
// side, and why, says together_test.go.
package e2e
