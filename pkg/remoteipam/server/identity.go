// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/selfsigned"
)

const (
	// Liqo tells a node from a dead one after 20 s; a connection is given no more.
	keepaliveTime    = 20 * time.Second
	keepaliveTimeout = 10 * time.Second

	// A full batch of IPv6 addresses takes 41 KiB.
	maxRequestBytes = 64 << 10
)

// TLSConfig serves the certificate and demands a client certificate that one of
// the client CAs signed.
func TLSConfig(certificate *selfsigned.Certificate, clientCAs *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: certificate.Get,
		ClientAuth:     tls.RequireAndVerifyClientCert,
		ClientCAs:      clientCAs,
	}
}

// caller returns the consumer that makes a call: the common name of its
// verified certificate. Liqo issues that certificate when two clusters
// authenticate, with the cluster ID as the common name
// (liqo/pkg/identityManager/certificate.go@v0.9.4). The cluster's own client CA
// signs other certificates too, of its nodes and administrators, so the name
// must be the one of a consumer.
func (s *Server) caller(ctx context.Context) (cluster.ID, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", status.Error(codes.Unauthenticated, "the connection has no peer")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return "", status.Error(codes.Unauthenticated, "a client certificate is required")
	}
	id := cluster.ID(info.State.VerifiedChains[0][0].Subject.CommonName)
	if !s.config.Inventory.IsConsumer(id) {
		return "", status.Errorf(codes.PermissionDenied, "cluster %q is not a consumer of this broker", id)
	}
	return id, nil
}
