// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remoteipam holds what the two ends of the remote IPAM agree on
// besides its wire: how a broker announces itself to its consumers, and the
// limits of a call.
//
// It knows neither gRPC nor Kubernetes; package server, client and inventory
// do.
package remoteipam

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

const (
	// Port is where the remote IPAM listens unless a flag says otherwise. It is
	// the one after Liqo's own IPAM, with which it shares a pod.
	Port = 6001

	// ServerName is the name in the server's certificate. It is not a host name
	// because the consumer reaches the server under an address that only the
	// consumer's cluster knows.
	ServerName = "remote-ipam.brokering.liqo.io"

	// AnnouncementName names the ConfigMap that a broker puts into the tenant
	// namespace of each consumer, where the consumer's virtual kubelet reads it
	// through the broker's Kubernetes API.
	AnnouncementName = "liqo-broker-remote-ipam"

	// ClientRoleName names the ClusterRole that lets a consumer read its
	// announcement; deploy/ installs it.
	ClientRoleName = "liqo-broker-remote-ipam-client"

	// MaxBatch is the number of addresses in one call of MapRelay. A call with
	// 1000 addresses stays under 64 KiB, far from gRPC's limit of 4 MiB.
	MaxBatch = 1000
)

// ErrNoBroker means that a foreign cluster does not announce a remote IPAM: it
// is no broker, or none for this consumer.
var ErrNoBroker = errors.New("the foreign cluster announces no remote IPAM")

// Announcement is what a consumer must know to trust a remote IPAM. It holds no
// secret.
type Announcement struct {
	// Broker is the cluster that serves.
	Broker cluster.ID
	// CA is the PEM certificate that signed the server's certificate.
	CA []byte
	// Client is the hash of the key that the broker issued a certificate for to the
	// cluster that reads this; empty if there is none. The broker's webhook keeps others
	// from getting one with the same name.
	Client string
}

const (
	brokerKey = "broker-id"
	caKey     = "ca.crt"
	clientKey = "client-key-sha256"
)

// Data returns the announcement as the data of a ConfigMap.
func (a Announcement) Data() map[string]string {
	data := map[string]string{brokerKey: string(a.Broker), caKey: string(a.CA)}
	if a.Client != "" {
		data[clientKey] = a.Client
	}
	return data
}

// AnnouncedClient returns the hash of the key in the data of a ConfigMap; empty if there is
// none.
func AnnouncedClient(data map[string]string) string { return data[clientKey] }

// KeyHash returns the hash by which the key of a certificate is known: the one of its
// subject public key info, in hexadecimal. A renewed certificate with the same key has the
// same one.
func KeyHash(publicKeyInfo []byte) string {
	sum := sha256.Sum256(publicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// What an announcement has at most: a cluster ID is the name of an object, and one
// certificate is less than 2 KiB.
const maxID, maxCA = 253, 64 << 10

// ParseAnnouncement is the inverse of [Announcement.Data].
func ParseAnnouncement(data map[string]string) (Announcement, error) {
	a := Announcement{Broker: cluster.ID(data[brokerKey]), CA: []byte(data[caKey]), Client: data[clientKey]}
	switch {
	case a.Broker == "":
		return Announcement{}, fmt.Errorf("announcement without %s", brokerKey)
	case len(a.Broker) > maxID:
		return Announcement{}, fmt.Errorf("announcement of %.*q..., which is too long for a cluster ID", maxShown, a.Broker)
	case len(a.CA) > maxCA:
		return Announcement{}, fmt.Errorf("announcement of %s: %s has %d bytes, more than %d", a.Broker, caKey, len(a.CA), maxCA)
	}
	if _, err := a.Roots(); err != nil {
		return Announcement{}, err
	}
	return a, nil
}

// Roots returns the certificate pool to verify the server with.
func (a Announcement) Roots() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(a.CA) {
		return nil, fmt.Errorf("announcement of %s: no certificate in %s", a.Broker, caKey)
	}
	return pool, nil
}
