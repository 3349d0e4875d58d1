// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// Callers tells clusters by the certificates that they show.
type Callers interface {
	// Name returns the name in a certificate that one of the client CAs signed. It
	// answers from memory.
	Name(connection *tls.ConnectionState) (cluster.ID, error)
	// Check fails with [callers.ErrNotIssued] unless the certificate is the one that was
	// issued to the cluster, and with another error if nobody can tell.
	Check(ctx context.Context, id cluster.ID, connection *tls.ConnectionState) error
}

// TLSConfig serves the certificate and demands a client certificate that one of the client
// CAs of that moment signed.
func TLSConfig(certificate *selfsigned.Certificate, clientCAs func() *x509.CertPool) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2"},
		GetCertificate: certificate.Get,
		ClientAuth:     tls.RequireAndVerifyClientCert,
		// A resumed session would show a certificate of the client CAs of another moment.
		SessionTicketsDisabled: true,
	}
	served := config.Clone()
	served.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := config.Clone()
		current.ClientCAs = clientCAs()
		return current, nil
	}
	return served
}

// caller returns the consumer that makes a call. Liqo issues it a certificate when two
// clusters authenticate, with the cluster ID as the common name
// (liqo/pkg/identityManager/certificate.go@v0.9.4). The cluster's own client CA signs other
// certificates too, of its nodes and administrators, so the name must be the one of a
// consumer; and Liqo signs any name, so the certificate must be the one that it wrote down
// for that consumer.
func (s *Server) caller(ctx context.Context) (cluster.ID, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", status.Error(codes.Unauthenticated, "the connection has no peer")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return "", status.Error(codes.Unauthenticated, "a client certificate is required")
	}
	id, err := s.config.Callers.Name(&info.State)
	if err != nil {
		return "", status.Error(codes.Unauthenticated, "the client certificate is no longer valid")
	}
	if !s.config.Inventory.IsConsumer(id) {
		return "", status.Error(codes.PermissionDenied, "this cluster is not a consumer of the broker")
	}
	switch err := s.config.Callers.Check(ctx, id, &info.State); {
	case err == nil:
		return id, nil
	case errors.Is(err, callers.ErrNotIssued):
		s.refused(id, "certificate", "Refused a caller with a certificate that was not issued to the consumer that it names")
		return "", status.Error(codes.PermissionDenied, "the client certificate is not the one that was issued to this cluster")
	default:
		s.config.Log.Error(err, "Cannot identify a caller", "consumer", id)
		return "", status.Error(codes.Unavailable, "the broker cannot check the client certificate at the moment")
	}
}
