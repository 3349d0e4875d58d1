// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcereaderv1 has the messages and the service by which Liqo v0.9.4 asks its resource plugin, generated from
// resourcereader.proto. It does not know what they mean.
package resourcereaderv1
