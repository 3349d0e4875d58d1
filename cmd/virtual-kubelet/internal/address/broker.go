// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/client"
)

// brokerClient is the client of the foreign cluster's remote IPAM, if one was
// configured; the zero value is none.
type brokerClient struct{ client *client.Client }

// newBrokerClient trusts the foreign cluster by what it announces in its own
// API, and authenticates with the identity that it gave to this cluster. One that is a
// token, as some clouds give, is no identity there: then there is no client.
func newBrokerClient(c *Config, changed func(), relayed func(netip.Addr) bool, log logr.Logger) (brokerClient, error) {
	if len(c.RemoteIPAM) == 0 {
		return brokerClient{}, nil
	}
	if len(c.Identity.CertData) == 0 {
		log.Info("The remote IPAM is not used: the identity at the foreign cluster is no certificate. "+
			"Pods behind the foreign cluster have no address here", "foreignCluster", c.ForeignName)
		return brokerClient{}, nil
	}
	api, err := kubernetes.NewForConfig(c.Identity)
	if err != nil {
		return brokerClient{}, fmt.Errorf("set up the client of the foreign cluster's API: %w", err)
	}
	certificate, err := tls.X509KeyPair(c.Identity.CertData, c.Identity.KeyData)
	if err != nil {
		return brokerClient{}, fmt.Errorf("use the certificate of the identity at cluster %s for --remote-ipam: %w",
			c.ForeignName, err)
	}
	return brokerClient{client.New(client.Config{
		Foreign:     c.Foreign,
		Servers:     c.RemoteIPAM,
		Certificate: certificate,
		Changed:     changed,
		Relayed:     relayed,
		Log:         log,
		Announcement: func(ctx context.Context) (remoteipam.Announcement, error) {
			return readAnnouncement(ctx, api, c.RemoteNamespace)
		},
	})}, nil
}

// readAnnouncement reads how the foreign cluster announces its remote IPAM. A
// cluster that is no broker has neither the ConfigMap nor the right to read it.
func readAnnouncement(ctx context.Context, api kubernetes.Interface, namespace string) (remoteipam.Announcement, error) {
	configMap, err := api.CoreV1().ConfigMaps(namespace).Get(ctx, remoteipam.AnnouncementName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		return remoteipam.Announcement{}, remoteipam.ErrNoBroker
	case err != nil:
		return remoteipam.Announcement{}, fmt.Errorf("read the announcement of the foreign cluster: %w", err)
	}
	return remoteipam.ParseAnnouncement(configMap.Data)
}

// relay returns the client as the addresses use it; nil if there is none.
func (b brokerClient) relay() Relay {
	if b.client == nil {
		return nil
	}
	return b.client
}

// run stays connected until the context ends.
func (b brokerClient) run(ctx context.Context) {
	if b.client != nil {
		b.client.Run(ctx)
	}
}
