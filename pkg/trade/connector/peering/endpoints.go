// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNotReachable means that a cluster is not reached where it has to be for a peering.
var ErrNotReachable = errors.New("not reachable")

// Endpoints are where a cluster says that others reach it. What is empty is not known.
type Endpoints struct {
	// Cluster is the ID of the cluster.
	Cluster string
	// Auth and APIServer are https://HOST[:PORT], of what lets clusters peer, and of the API server.
	Auth, APIServer string
	// Gateway is HOST:PORT (UDP), where tunnels end. One of two clusters is enough that has it.
	Gateway string
}

// Reach knows where this cluster is, and tries where others are. It may be used concurrently.
type Reach interface {
	// Own returns where others reach this cluster. The error names what of it is not known; the rest is there all the same.
	Own(ctx context.Context) (Endpoints, error)
	// Try tries to reach another cluster, for some seconds at most. The error is an [UnreachedError], which is [ErrNotReachable], or that of
	// ctx.
	Try(ctx context.Context, at Endpoints) error
}

// The endpoints, as people are told of them.
const (
	AuthEndpoint      = "liqo-auth"
	APIServerEndpoint = "the API server"
	GatewayEndpoint   = "liqo-gateway"
)

// Unreached is an endpoint that was not reached.
type Unreached struct {
	// Endpoint is AuthEndpoint, APIServerEndpoint or GatewayEndpoint, At where it was tried, and Why what came of it.
	Endpoint, At, Why string
}

// UnreachedError is the endpoints of a cluster that were not reached, in the order of Endpoints.
type UnreachedError []Unreached

// Error implements error. It says what came of each: that is for this side alone.
func (u UnreachedError) Error() string {
	texts := make([]string, len(u))
	for i, each := range u {
		texts[i] = fmt.Sprintf("%s at %.300q: %.200s", each.Endpoint, each.At, each.Why)
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns ErrNotReachable.
func (UnreachedError) Unwrap() error { return ErrNotReachable }

// Endpoints returns which they are.
func (u UnreachedError) Endpoints() []string {
	names := make([]string, len(u))
	for i, each := range u {
		names[i] = each.Endpoint
	}
	return names
}
