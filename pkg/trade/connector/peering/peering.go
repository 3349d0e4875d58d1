// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peering is how a connector has clusters peer and part: what a buyer does with the credentials that it was given, and what a
// seller gives and takes back.
//
// It knows neither contracts nor how they were made, and none of Liqo's objects: those are in the packages below, one for each way to peer.
// Credentials and Endpoints have what Liqo 0.9 needs.
package peering

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

var (
	// ErrCredentials means that a document is not one of credentials.
	ErrCredentials = errors.New("malformed credentials")
	// ErrForeign means that there is a peering with the cluster that no connector made: it is left alone.
	ErrForeign = errors.New("the clusters are peered without a contract")
	// ErrUnguarded means that nothing would keep the other cluster in bounds here: there are no peerings with strangers then.
	ErrUnguarded = errors.New("this cluster is not guarded against its peers")
	// ErrInside means that a host is inside of every cluster or machine, where no other cluster is.
	ErrInside = errors.New("no other cluster is there")
)

// Buyer peers this cluster with those of sellers. Each method can be called again at any time, with the same effect; it does one step
// and does not wait. Buyers may be used concurrently for different clusters.
type Buyer interface {
	Nodes

	// Peer begins a peering, or goes on with it. Nodes that are closed stay closed. The error is [ErrForeign] if there is one already.
	Peer(ctx context.Context, with Credentials) error
	// State returns how far a peering has come.
	State(ctx context.Context, remote cluster.ID) (State, error)
	// Unpeer ends a peering that Peer began, and reports whether nothing is left of it. What people have made it leaves alone.
	Unpeer(ctx context.Context, remote cluster.ID) (done bool, err error)
}

// Nodes are the nodes that stand for the clusters of sellers, and what runs there.
type Nodes interface {
	// Requested returns what the pods on the nodes of a cluster request, but for those that have ended, with their number as "pods".
	Requested(ctx context.Context, remote cluster.ID) (corev1.ResourceList, error)
	// Drain has nothing new run on the nodes of a cluster, and evicts what does. It returns how many pods are left. It leaves those
	// alone that run on every node.
	Drain(ctx context.Context, remote cluster.ID) (left int, err error)
	// Fit has nothing new run on the nodes of a cluster, and evicts pods, until what those that stay request fits into the room; what is not
	// in it does not count. It returns how many pods still have to leave. It leaves those alone that run on every node. The nodes stay closed
	// to new pods while they are larger than the room, which pods that were evicted would fill again: see Open.
	Fit(ctx context.Context, remote cluster.ID, room corev1.ResourceList) (left int, err error)
	// Open opens the nodes of a cluster that Drain or Fit has closed, if they are no larger than the room, which is what contracts give.
	Open(ctx context.Context, remote cluster.ID, room corev1.ResourceList) error
}

// Seller lets the clusters of buyers peer with this one. Its methods are as those of [Buyer].
type Seller interface {
	// Issue returns what a cluster needs to peer with this one, and lets it. What it returns is good for one cluster, once. The error is
	// [ErrForeign] if people have made a peering with it, in any direction.
	Issue(ctx context.Context, buyer cluster.Identity) (Credentials, error)
	// Withdraw ends what Issue began, and nothing that people have made: the cluster is offered nothing any more, and what it was given opens
	// nothing. It reports whether the cluster consumes nothing any more by what was issued.
	Withdraw(ctx context.Context, buyer cluster.ID) (done bool, err error)
}

// State is how far a peering has come, as the buyer sees it.
type State struct {
	// Exists is false if there is no peering, nor one being made or ended.
	Exists bool
	// Established tells that the seller offers what it has sold.
	Established bool
	// Nodes are those that stand for the seller's cluster.
	Nodes []Node
}

// Node is a virtual node.
type Node struct {
	Name string
	// Ready tells that pods can run on it, and Closed that Drain or Fit has closed it to new ones.
	Ready, Closed bool
}

// maxCredentials bounds a document of credentials, in bytes.
const maxCredentials = 4 << 10

// Credentials are what a buyer needs to peer with a seller's cluster. They print as nothing but the cluster's ID.
type Credentials struct {
	cluster cluster.Identity
	authURL string
	host    string
	// token is behind a pointer: package fmt prints unexported fields without asking them.
	token *string
}

// document is how credentials pass the channel of a contract.
type document struct {
	Version     int    `json:"version"`
	ClusterID   string `json:"clusterID"`
	ClusterName string `json:"clusterName"`
	AuthURL     string `json:"authURL"`
	Token       string `json:"token"`
}

// NewCredentials returns credentials for a cluster, whose authentication service has an https URL without a path, and with a
// host outside of the machine, its link, and the names of a cluster. The error is [ErrCredentials].
func NewCredentials(of cluster.Identity, authURL, token string) (Credentials, error) {
	for _, name := range []struct{ what, value string }{{"clusterID", string(of.ID)}, {"clusterName", of.Name}} {
		if problems := validation.IsDNS1123Label(name.value); len(problems) > 0 {
			return Credentials{}, fmt.Errorf("%w: %s is not a label of DNS", ErrCredentials, name.what)
		}
	}
	parsed, err := party.ParseEndpoint(authURL)
	if err != nil || parsed.Path != "" {
		return Credentials{}, fmt.Errorf("%w: authURL is not https://HOST[:PORT]", ErrCredentials)
	}
	host := strings.ToLower(parsed.Hostname())
	if err := Outside(host); err != nil {
		return Credentials{}, fmt.Errorf("%w: authURL: %w", ErrCredentials, err)
	}
	if token == "" || len(token) > maxCredentials/2 {
		return Credentials{}, fmt.Errorf("%w: the token is missing or too long", ErrCredentials)
	}
	return Credentials{cluster: of, authURL: authURL, host: host, token: &token}, nil
}

// Outside returns why a host is inside of every cluster or machine: a name that only a cluster or a machine knows, or an address of the
// machine itself, of its link, as those from which clouds give away the credentials of machines, or of nobody. The error is [ErrInside].
// Where a name leads, only who resolves it can tell: it asks again with each address.
func Outside(host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return outsideName(strings.ToLower(host))
	}
	a := address.Unmap()
	if address.Zone() != "" || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() ||
		a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return fmt.Errorf("%w: %s", ErrInside, a)
	}
	return nil
}

// outsideName is Outside of a name. Names with one label, and those below, are completed or known by the DNS of a cluster or a machine
// alone.
func outsideName(host string) error {
	inside := len(validation.IsDNS1123Subdomain(host)) > 0 || !strings.Contains(host, ".")
	for _, zone := range []string{".svc", ".cluster.local", ".localhost", ".local", ".internal"} {
		inside = inside || strings.HasSuffix(host, zone)
	}
	if inside {
		return fmt.Errorf("%w: %.253q is no name that others know", ErrInside, host)
	}
	return nil
}

// ParseCredentials returns the credentials of a document. The error is [ErrCredentials]; it quotes nothing of the document.
func ParseCredentials(text []byte) (Credentials, error) {
	if len(text) > maxCredentials {
		return Credentials{}, fmt.Errorf("%w: more than %d bytes", ErrCredentials, maxCredentials)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var d document
	if err := decoder.Decode(&d); err != nil {
		return Credentials{}, fmt.Errorf("%w: no JSON object of known fields", ErrCredentials)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Credentials{}, fmt.Errorf("%w: something follows the JSON object", ErrCredentials)
	}
	if d.Version != 1 {
		return Credentials{}, fmt.Errorf("%w: version %d is not 1", ErrCredentials, d.Version)
	}
	return NewCredentials(cluster.Identity{ID: cluster.ID(d.ClusterID), Name: d.ClusterName}, d.AuthURL, d.Token)
}

// Document returns the credentials as they pass the channel of a contract, and nothing else.
func (c Credentials) Document() ([]byte, error) {
	return json.Marshal(document{
		Version: 1, ClusterID: string(c.cluster.ID), ClusterName: c.cluster.Name, AuthURL: c.authURL, Token: c.Token(),
	})
}

// Cluster returns the cluster with which they let peer.
func (c Credentials) Cluster() cluster.Identity { return c.cluster }

// AuthURL returns where Liqo authenticates the buyer's cluster.
func (c Credentials) AuthURL() string { return c.authURL }

// Host returns the host of AuthURL, an address or a name, without the port.
func (c Credentials) Host() string { return c.host }

// Token returns the secret. It is for Liqo's Secret alone.
func (c Credentials) Token() string {
	if c.token == nil {
		return ""
	}
	return *c.token
}

// String implements fmt.Stringer.
func (c Credentials) String() string { return "credentials for cluster " + string(c.cluster.ID) }

// GoString implements fmt.GoStringer.
func (c Credentials) GoString() string { return c.String() }

// Format implements fmt.Formatter, so that no verb prints the fields.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue implements slog.LogValuer.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON implements json.Marshaler: who writes credentials by chance writes none.
func (c Credentials) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// MarshalLog implements logr.Marshaler.
func (c Credentials) MarshalLog() any { return c.String() }
