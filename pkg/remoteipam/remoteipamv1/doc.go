// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remoteipamv1 is the wire of the remote IPAM, generated from
// remoteipam.proto. It knows nothing of who serves or calls it.
package remoteipamv1
