// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 says what objects of Liqo 1.x mean, in the values of package liqo, as package v09 does of those of Liqo 0.9. It imports no
// Liqo: package api, below it, has the kinds as types of this project.
//
// It follows Liqo v1.2.0. It reads objects, and does not know how they are found, nor what is decided by them.
package v1
