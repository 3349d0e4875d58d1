// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

const (
	// tryFor is how long another cluster may take to answer.
	tryFor = 4 * time.Second
	// refusedWithin is how long it is waited for the news that nobody has the port of a gateway, which answers nothing.
	refusedWithin = time.Second
	// ownFor is for how long it counts where this cluster is.
	ownFor = 2 * time.Second
	// maxIDs and maxHeaders bound in bytes what is read of an answer.
	maxIDs, maxHeaders = 4 << 10, 16 << 10
)

// Reach implements [peering.Reach] as Liqo 0.9 peers out of band: each of two clusters authenticates at the other one and writes into its
// API server, and one of their gateways reaches the other one's.
type Reach struct {
	client client.Client
	liqo   string
	admits func(host string) error

	mu     sync.Mutex // of own, err and looked
	own    peering.Endpoints
	err    error
	looked time.Time
}

var _ peering.Reach = (*Reach)(nil)

// NewReach returns a Reach. The client reads from the API server, and namespace is where Liqo runs. Admits returns why nothing is to be
// dialled at a host, which is a name, or an address also where a name leads to it; nil is [peering.Outside].
func NewReach(c client.Client, namespace string, admits func(host string) error) *Reach {
	if admits == nil {
		admits = peering.Outside
	}
	return &Reach{client: c, liqo: namespace, admits: admits}
}

// Own implements [peering.Reach]. What was found counts for some seconds.
func (r *Reach) Own(ctx context.Context) (peering.Endpoints, error) {
	r.mu.Lock()
	if age := time.Since(r.looked); !r.looked.IsZero() && age < ownFor {
		defer r.mu.Unlock()
		return r.own, r.err
	}
	r.mu.Unlock()
	own, err := r.find(ctx)
	if ctx.Err() == nil { // What it was not told in time is no answer for others.
		r.mu.Lock()
		defer r.mu.Unlock()
		r.own, r.err, r.looked = own, err, time.Now()
	}
	return own, err
}

// find finds where this cluster is.
func (r *Reach) find(ctx context.Context) (peering.Endpoints, error) {
	identity, failed := v09.OwnIdentity(ctx, r.client, r.liqo)
	own := peering.Endpoints{Cluster: string(identity.ID)}
	var err error
	own.Auth, err = v09.AuthURL(ctx, r.client, r.liqo)
	failed = errors.Join(failed, err)
	own.APIServer, err = v09.APIServerURL(ctx, r.client, r.liqo)
	failed = errors.Join(failed, err)
	own.Gateway, err = v09.GatewayAddress(ctx, r.client, r.liqo)
	return own, errors.Join(failed, err)
}

// Try implements [peering.Reach]. All endpoints are tried at once. That of a gateway is left out if it is empty, and counts as reached
// unless it is known that nobody is there: WireGuard answers nobody whom it does not know.
func (r *Reach) Try(ctx context.Context, at peering.Endpoints) error {
	trying, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	tries := []struct {
		endpoint, at string
		try          func(ctx context.Context, at string) error
	}{
		{peering.AuthEndpoint, at.Auth, func(ctx context.Context, url string) error { return r.auth(ctx, url, at.Cluster) }},
		{peering.APIServerEndpoint, at.APIServer, r.apiServer},
		{peering.GatewayEndpoint, at.Gateway, r.gateway},
	}
	failures := make([]error, len(tries))
	var all sync.WaitGroup
	for i, t := range tries {
		all.Go(func() { failures[i] = t.try(trying, t.at) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("try to reach cluster %.63s: %w", at.Cluster, err)
	}
	var unreached peering.UnreachedError
	for i, err := range failures {
		if err != nil {
			unreached = append(unreached, peering.Unreached{Endpoint: tries[i].endpoint, At: tries[i].at, Why: why(err)})
		}
	}
	if len(unreached) > 0 {
		return unreached
	}
	return nil
}

// dialer returns what dials where other clusters can be, and nowhere else: it asks again when a name has become an address.
func (r *Reach) dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		return r.admits(host)
	}}
}

// place returns where https://HOST[:PORT] is dialled.
func (r *Reach) place(at string) (string, error) {
	parsed, err := party.ParseEndpoint(at)
	switch {
	case at == "":
		return "", errors.New("it is not told")
	case err != nil || parsed.Path != "":
		return "", errors.New("it is not https://HOST[:PORT]")
	}
	port := parsed.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(parsed.Hostname(), port), r.admits(parsed.Hostname())
}

// anyCertificate has TLS end at whoever answers: Liqo's authentication service has a certificate that nobody signs, and nothing is told
// here.
func anyCertificate() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // As said.
}

// auth asks an authentication service whose it is. It follows no redirect.
func (r *Reach) auth(ctx context.Context, at, id string) error {
	if _, err := r.place(at); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+v09.PathIDs, http.NoBody)
	if err != nil {
		return errors.New("it is not https://HOST[:PORT]")
	}
	asking := http.Client{
		Transport: &http.Transport{
			DialContext: r.dialer().DialContext, TLSClientConfig: anyCertificate(), DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaders,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := asking.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with status %d", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxIDs))
	if err != nil {
		return err
	}
	var said v09.IDs
	if err := json.Unmarshal(text, &said); err != nil {
		return errors.New("it does not answer as liqo-auth does")
	}
	if said.ClusterID != id {
		return fmt.Errorf("cluster %.63q answers", said.ClusterID)
	}
	return nil
}

// apiServer has TLS begin.
func (r *Reach) apiServer(ctx context.Context, at string) error {
	address, err := r.place(at)
	if err != nil {
		return err
	}
	c, err := (&tls.Dialer{NetDialer: r.dialer(), Config: anyCertificate()}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	_ = c.Close() // Nothing was said.
	return nil
}

// gateway sends a byte, which no gateway answers, and waits for the news that nobody is there.
func (r *Reach) gateway(ctx context.Context, at string) error {
	if at == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return errors.New("it is not HOST:PORT")
	}
	if err := r.admits(host); err != nil {
		return err
	}
	c, err := r.dialer().DialContext(ctx, "udp", at)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(refusedWithin)); err != nil {
		return err
	}
	_, err = c.Write([]byte{0})
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if err == nil || os.IsTimeout(err) {
		return nil
	}
	return err
}

// why returns in a few words why something was not reached. They are the same each time, without ports of this side.
func why(err error) string {
	var (
		resolved *net.DNSError
		number   syscall.Errno
		inner    *net.OpError
	)
	switch {
	case errors.Is(err, peering.ErrInside):
		return peering.ErrInside.Error()
	case errors.As(err, &resolved) && resolved.IsNotFound:
		return "no such name"
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return fmt.Sprintf("no answer in %s", tryFor)
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &inner):
		return inner.Err.Error()
	}
	if wrapped := new(url.Error); errors.As(err, &wrapped) {
		return wrapped.Err.Error()
	}
	return err.Error()
}
