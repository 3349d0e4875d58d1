// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// watchCallers returns what knows by which certificates consumers call, with a line of Liqo, and the authorities that sign them. It follows
// both.
func (b *broker) watchCallers(
	ctx context.Context, with line.Line, mgr manager.Manager, direct client.Client,
) (*certified, *callers.Authorities, error) {
	clientset, err := kubernetes.NewForConfig(b.cfg.rest)
	if err != nil {
		return nil, nil, fmt.Errorf("reach the API server %s: %w", b.cfg.rest.Host, err)
	}
	authorities, err := callers.NewAuthorities(ctx, clientset, inEveryReplica{mgr}, b.cfg.log.WithName("callers"))
	if err != nil {
		return nil, nil, err
	}
	return &certified{objects: mgr.GetClient(), callers: callers.New(authorities, issuedBy(with, direct))}, authorities, nil
}

// issuedBy looks up the certificates that a line of Liqo has issued. The daemon reads no Secrets: with Liqo 0.9 the remote IPAM tells of
// the certificates, and with 1.x the Tenants do.
func issuedBy(with line.Line, direct client.Reader) callers.Issued {
	hash := snapshot.AnnouncedKey
	if !with.HasPlugin() {
		hash = signedKey
	}
	return func(ctx context.Context, id cluster.ID) (string, error) {
		found, err := hash(ctx, direct, id)
		if errors.Is(err, liqo.ErrNoTenant) || errors.Is(err, liqo.ErrNotIssued) {
			return "", nil
		}
		return found, err
	}
}

// signedKey returns the hash of the key for which Liqo 1.x has issued a certificate, as [remoteipam.KeyHash] has it.
func signedKey(ctx context.Context, direct client.Reader, id cluster.ID) (string, error) {
	key, err := v1.IssuedKey(ctx, direct, id)
	if err != nil {
		return "", err
	}
	return remoteipam.KeyHash(key), nil
}

// inEveryReplica runs what is added also where another replica leads.
type inEveryReplica struct{ mgr manager.Manager }

// Add implements callers.Runner.
func (r inEveryReplica) Add(runnable manager.Runnable) error {
	return r.mgr.Add(lease.EveryReplica(runnable.Start))
}

// apiTLS serves the HTTP API with the daemon's certificate. Clients may show a certificate, which is looked at when they ask for
// something: not everybody has one.
func (p *parts) apiTLS() *tls.Config {
	config := p.certificate.tls()
	if p.authorities == nil {
		return config
	}
	config.ClientAuth = tls.RequestClientCert
	served := config.Clone()
	served.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := config.Clone()
		current.NextProtos = []string{"http/1.1"}
		current.ClientCAs = p.authorities.Pool() // So that browsers offer no others.
		return current, nil
	}
	return served
}

// certified tells consumers by the certificates that Liqo issued to them when they peered.
type certified struct {
	objects client.Reader
	callers interface {
		Name(connection *tls.ConnectionState) (cluster.ID, error)
		Check(ctx context.Context, id cluster.ID, connection *tls.ConnectionState) error
		Known(connection *tls.ConnectionState) (cluster.ID, bool)
	}
}

// identify implements httpapi.Identify. The cluster's authority signs other certificates too, and Liqo signs any name: who is
// named must be a consumer, and the certificate the one that was written down for it. The API server is asked only about
// consumers, which are few.
func (c *certified) identify(ctx context.Context, connection *tls.ConnectionState) (cluster.ID, error) {
	id, err := c.callers.Name(connection)
	if err != nil {
		return "", httpapi.ErrNoConsumer
	}
	var consumer v1alpha1.Consumer
	if err := c.objects.Get(ctx, client.ObjectKey{Name: string(id)}, &consumer); apierrors.IsNotFound(err) {
		return "", httpapi.ErrNoConsumer
	} else if err != nil {
		return "", fmt.Errorf("get consumer %s: %w", id, err)
	}
	if !consumer.IsServed() { // Its certificate outlasts the peering.
		return "", httpapi.ErrNoConsumer
	}
	switch err := c.callers.Check(ctx, id, connection); {
	case errors.Is(err, callers.ErrNotIssued):
		return "", httpapi.ErrNoConsumer
	case err != nil:
		return "", err
	}
	return id, nil
}
