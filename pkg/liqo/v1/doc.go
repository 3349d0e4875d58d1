// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 says what objects of Liqo 1.x mean, in the values of package liqo, as package v09 does of those of Liqo 0.9. It imports no
// Liqo: package api, below it, has the kinds as types of this project.
//
// It follows Liqo v1.2.0. It reads objects, and says how an answer to one is written. It does not know what is decided by them.
package v1
