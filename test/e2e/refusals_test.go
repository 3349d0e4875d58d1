// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/relay"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab/pki"
)

// callPatience is how long the remote IPAM may take to answer or to refuse.
const callPatience = 10 * time.Second

// TestRemoteIPAMRefusesStrangers calls the broker's remote IPAM as the consumer's virtual kubelet does, over the reflected Service,
// with identities that are not the consumer's.
func TestRemoteIPAMRefusesStrangers(t *testing.T) {
	needs(t, federation.RemoteIPAM)
	installed(t)
	ca, err := tls.LoadX509KeyPair(caFile("ca.crt"), caFile("ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewAuthority("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	otherCA, err := tls.X509KeyPair(other.Certificate, other.Key)
	if err != nil {
		t.Fatal(err)
	}
	config, err := fed.Broker.Lab.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	administrator, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }

	cases := map[string]struct {
		reason      string
		certificate tls.Certificate
		code        codes.Code
		// message is part of the answer. A connection that ends in its handshake may end before the alert arrives that says why.
		message string
	}{
		"Consumer": {"the identity that Liqo gave to the consumer", consumerIdentity(t), codes.OK, ""},
		"Renewed": {
			"another certificate of the broker's CA for the key of the consumer", renew(t, ca, consumerIdentity(t), in(time.Hour)), codes.OK, "",
		},
		"Forged": {
			"a certificate of the broker's CA with the consumer's name, as Liqo signs for whoever has the token",
			issue(t, ca, fed.Consumer.ID, in(time.Hour)), codes.PermissionDenied, "not the one that was issued",
		},
		"None":    {"no certificate", tls.Certificate{}, codes.Unavailable, ""},
		"OtherCA": {"the right name, signed by another CA", issue(t, otherCA, fed.Consumer.ID, in(time.Hour)), codes.Unavailable, ""},
		"Expired": {
			"the right name and the right CA, until a minute ago", issue(t, ca, fed.Consumer.ID, in(-time.Minute)), codes.Unavailable, "",
		},
		"NoConsumer": {
			"a cluster that does not use this broker", issue(t, ca, "stranger", in(time.Hour)), codes.PermissionDenied, "is not a consumer",
		},
		"Administrator": {"the broker cluster's own administrator", administrator, codes.PermissionDenied, "is not a consumer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), callPatience)
			defer cancel()
			api := dialRemoteIPAM(t, tc.certificate)
			_, err := api.MapRelay(ctx, &pb.MapRelayRequest{})
			checkStatus(t, "MapRelay with "+tc.reason, err, tc.code, tc.message)
			_, err = routes(ctx, api)
			checkStatus(t, "Watch with "+tc.reason, err, tc.code, tc.message)
		})
	}
}

// TestRemoteIPAMRefusesAddresses asks with the consumer's own identity for addresses that it has no business with.
func TestRemoteIPAMRefusesAddresses(t *testing.T) {
	needs(t, federation.RemoteIPAM)
	const namespace = "refusals"
	together(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 2)
	own := copies(t, namespace, 2)[0].Address[fed.Broker.Name]
	api := dialRemoteIPAM(t, consumerIdentity(t))
	ctx, cancel := context.WithTimeout(t.Context(), callPatience)
	defer cancel()

	cases := []struct{ reason, address, refusal string }{
		{"a pod that the consumer offloaded", own, ""},
		{"a pod of the broker itself", networkManager(t).Status.PodIP, relay.ErrNotOffloaded.Error()},
		{
			"a pod of a provider, which the provider keeps for itself",
			seen(t, fed.Broker, fed.ProviderB, pod(t, fed.ProviderB, "default", "tools").Status.PodIP), relay.ErrNotOffloaded.Error(),
		},
		{
			"a pod of the consumer, which did not leave it",
			seen(t, fed.Broker, fed.Consumer, pod(t, fed.Consumer, "default", "tools").Status.PodIP), relay.ErrNotOffloaded.Error(),
		},
		{"the broker's API server", fed.Broker.Lab.Address.String(), relay.ErrNotOffloaded.Error()},
		{"no address", "web." + namespace, "is not an IP address"},
	}
	request := &pb.MapRelayRequest{}
	for _, tc := range cases {
		request.Addresses = append(request.Addresses, tc.address)
	}
	response, err := api.MapRelay(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.GetMappings()) != len(cases) {
		t.Fatalf("got %d answers to %d questions", len(response.GetMappings()), len(cases))
	}
	for i, tc := range cases {
		mapping := response.GetMappings()[i]
		if !strings.Contains(mapping.GetRefusal(), tc.refusal) || (mapping.GetRefusal() == "") != (tc.refusal == "") ||
			(mapping.GetRelayAddress() == "") != (tc.refusal != "") {
			t.Errorf("%s, %s: got address %q and refusal %q, want refusal %q", tc.reason, tc.address, mapping.GetRelayAddress(),
				mapping.GetRefusal(), tc.refusal)
		}
	}

	_, err = api.MapRelay(ctx, &pb.MapRelayRequest{Addresses: slices.Repeat([]string{own}, remoteipam.MaxBatch+1)})
	checkStatus(t, "MapRelay of one address too many", err, codes.InvalidArgument, strconv.Itoa(remoteipam.MaxBatch))
}

// TestRemoteIPAMHidesProviders asks with the consumer's own identity for the routes, in both modes.
func TestRemoteIPAMHidesProviders(t *testing.T) {
	needs(t, federation.RemoteIPAM)
	const namespace = "hidden"
	api := dialRemoteIPAM(t, consumerIdentity(t))
	check := func(mode v1alpha1.Mode, want ...string) {
		t.Helper()
		start(t, mode)
		// The remote IPAM learns of the mode when the consumer's object tells of it, as this test does.
		eventually(t, time.Minute, func(ctx context.Context) error {
			got, err := routes(ctx, api)
			if err != nil {
				return err
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("routes of a consumer in mode %s (-want +got):\n%s", mode, diff)
			}
			return nil
		})
	}
	check(v1alpha1.ModeAggregated)
	deploy(t, namespace, federation.Web, 1)
	own := copies(t, namespace, 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), callPatience)
	defer cancel()
	response, err := api.MapRelay(ctx, &pb.MapRelayRequest{Addresses: []string{own.Address[fed.Broker.Name]}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := response.GetMappings()[0].GetRelayAddress(), own.Address[fed.Consumer.Name]; got != want {
		t.Errorf("relay address of an aggregated consumer's own pod: %q, want %q, as the consumer shows it", got, want)
	}
	check(v1alpha1.ModeOrchestrated, cluster.Identity{ID: fed.ProviderA.ID, Name: fed.ProviderA.Name}.String(),
		cluster.Identity{ID: fed.ProviderB.ID, Name: fed.ProviderB.Name}.String())
}

// routes returns the names and IDs of the providers in the first answer to Watch.
func routes(ctx context.Context, api pb.RemoteIPAMClient) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := api.Watch(ctx, &pb.WatchRequest{})
	if err != nil {
		return nil, err
	}
	message, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if got := cluster.ID(message.GetBrokerId()); got != fed.Broker.ID {
		return nil, fmt.Errorf("cluster %s answers, not the broker", got)
	}
	var providers []string
	for _, route := range message.GetRoutes() {
		providers = append(providers, cluster.Identity{ID: cluster.ID(route.GetProviderId()), Name: route.GetProviderName()}.String())
	}
	slices.Sort(providers)
	return providers, nil
}

func checkStatus(t *testing.T, deed string, err error, code codes.Code, message string) {
	t.Helper()
	if got := status.Code(err); got != code || err != nil && !strings.Contains(err.Error(), message) {
		t.Errorf("%s: got %v, want code %s and %q", deed, err, code, message)
	}
}

// dialRemoteIPAM returns a client of the broker's remote IPAM that connects from the consumer's network, and trusts what the broker
// announces to the consumer. It shows the certificate even to a server that does not ask for one of its CA.
func dialRemoteIPAM(t *testing.T, certificate tls.Certificate) pb.RemoteIPAMClient {
	t.Helper()
	service, err := fed.ReflectedNetworkManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var configMap corev1.ConfigMap
	key := client.ObjectKey{Namespace: string(identityOf(t, fed.Consumer).Data["namespace"]), Name: remoteipam.AnnouncementName}
	if err := fed.Broker.Get(t.Context(), key, &configMap); err != nil {
		t.Fatal(err)
	}
	announcement, err := remoteipam.ParseAnnouncement(configMap.Data)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := announcement.Roots()
	if err != nil {
		t.Fatal(err)
	}
	from := pod(t, fed.Consumer, "default", "tools")
	connection, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(remoteipam.Port)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return fed.Consumer.Dial(ctx, from, address)
		}),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS13, ServerName: remoteipam.ServerName, RootCAs: roots,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
		})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return pb.NewRemoteIPAMClient(connection)
}

// consumerIdentity returns the certificate that the broker gave to the consumer when they peered.
func consumerIdentity(t *testing.T) tls.Certificate {
	t.Helper()
	shown := identityOf(t, fed.Consumer)
	certificate, err := tls.X509KeyPair(shown.Certificate, shown.Key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// identityOf returns by what a peer shows the broker who it is.
func identityOf(t *testing.T, peer *federation.Cluster) *federation.Credentials {
	t.Helper()
	shown, err := peer.CredentialsAt(t.Context(), fed.Broker)
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// issue makes a client certificate as the broker's API server would accept it, up to its end.
func issue(t *testing.T, ca tls.Certificate, name cluster.ID, notAfter time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return sign(t, ca, name, key, notAfter)
}

// renew makes another client certificate for the key of one.
func renew(t *testing.T, ca, old tls.Certificate, notAfter time.Time) tls.Certificate {
	t.Helper()
	key, ok := old.PrivateKey.(crypto.Signer)
	if !ok {
		t.Fatalf("the key is a %T", old.PrivateKey)
	}
	return sign(t, ca, fed.Consumer.ID, key, notAfter)
}

func sign(t *testing.T, ca tls.Certificate, name cluster.ID, key crypto.Signer, notAfter time.Time) tls.Certificate {
	t.Helper()
	authority, err := x509.ParseCertificate(ca.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: string(name), Organization: []string{"liqo.io"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, key.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// caFile returns the path of a file of the CA that signs the clients of the broker's API server. The lab keeps it beside the
// administrator's kubeconfig.
func caFile(name string) string {
	return filepath.Join(filepath.Dir(fed.Broker.Lab.KubeconfigPath()), "pki", name)
}
