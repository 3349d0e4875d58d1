// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve serves the API of the virtual node's kubelet to those who may use it, and the
// metrics and profiles of the virtual kubelet. It does not know how pods are reflected.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"golang.org/x/net/netutil"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	utilexec "k8s.io/utils/exec"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
)

const (
	// The kubelet's own limits (k8s.io/kubernetes/pkg/kubelet, v1.34): a quiet
	// `kubectl exec` stays for four hours.
	streamIdleTimeout     = 4 * time.Hour
	streamCreationTimeout = 30 * time.Second

	readHeaderTimeout = 10 * time.Second
	idleTimeout       = time.Minute
	shutdownTimeout   = 5 * time.Second

	maxHeaderBytes = 64 << 10
	// maxConnections are open at once, of callers that are let in and of strangers.
	maxConnections = 1024
	// maxStrangers and maxStrangersEach bound the connections of those who have not been let
	// in yet, in all and of each for whom they count.
	maxStrangers, maxStrangersEach = 512, 64
)

// Server is the part of the kubelet's API that kube-apiserver calls for logs,
// exec, attach and port-forward.
type Server struct {
	http        *http.Server
	certificate *certificateSource
	admission   *Admission
	tls         *tls.Config // For each of its listeners, which change their copy.
}

// Config is what a server must know of its virtual node.
type Config struct {
	// NodeName is the name of the node, for which the certificate is.
	NodeName string
	// NodeIP is the address in the certificate; the server listens at all, at Port.
	NodeIP string
	Port   uint16
	// CertificateType is one of Liqo's: kubelet, aws or self-signed.
	CertificateType string
	// HomeCluster is the ID of this cluster, of whose pods the foreign one gives metrics.
	HomeCluster string
}

// NewServer returns a server of the API for pods, whom the admission lets in; its certificate is
// signed by way of local, and remote is asked for metrics.
func NewServer(
	config *Config, pods workload.PodHandler, local kubernetes.Interface, remote rest.Interface, admission *Admission,
) (*Server, error) {
	certificate, err := newCertificateSource(config, local)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	api.AttachPodRoutes(api.PodHandlerConfig{
		RunInContainer:        withExitCode(pods.Exec),
		AttachToContainer:     pods.Attach,
		PortForward:           pods.PortForward,
		GetContainerLogs:      pods.Logs,
		GetStatsSummary:       pods.Stats,
		GetPodsFromKubernetes: pods.List,
		GetPods:               pods.List,
		StreamIdleTimeout:     streamIdleTimeout,
		StreamCreationTimeout: streamCreationTimeout,
	}, mux, true)
	used := newUsage(pods)
	for _, path := range []string{"/metrics", "/metrics/cadvisor", usagePath, "/metrics/probes"} {
		mux.Handle(path, scrape(remote, config.HomeCluster, used))
	}
	// A certificate is verified when it is used: who shows none may have a token.
	shown := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.current, ClientAuth: tls.RequestClientCert}
	return &Server{
		certificate: certificate,
		tls:         shown,
		admission:   admission,
		http: &http.Server{
			Addr:    net.JoinHostPort("", strconv.Itoa(int(config.Port))),
			Handler: admission.guard(dropUnservedProtocols(mux)),
			// Neither logs that are followed nor streams have an end in time.
			ReadHeaderTimeout: readHeaderTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ConnContext:       withConnection,
			TLSConfig:         shown.Clone(),
		},
	}, nil
}

// Run serves until the context ends, then without an error. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.http.Addr)
	if err != nil {
		return fmt.Errorf("serve the kubelet API: %w", err)
	}
	return s.serve(ctx, netutil.LimitListener(listener, maxConnections))
}

// serve serves at a listener, which it closes.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	s.certificate.start()
	defer s.certificate.stop()
	following, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { s.admission.runAuthority(following) })
	defer group.Wait()
	defer stop()
	stopped := make(chan error, 1)
	bounded := httpserver.Bound(listener, httpserver.Bounds{Of: s.admission.source, All: maxStrangers, Each: maxStrangersEach})
	go func() { stopped <- s.http.ServeTLS(bounded, "", "") }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve the kubelet API on %s: %w", s.http.Addr, err)
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(shutdown)
	if errors.Is(err, context.DeadlineExceeded) {
		// Streams last as long as their user wants.
		err = s.http.Close()
	}
	<-stopped
	return err
}

// RunMetrics serves metrics at an address of their own, over TLS and to who may get the metrics of the virtual node, as those of any
// kubelet, until the context ends. The server must run: it has the certificate.
func (s *Server) RunMetrics(ctx context.Context, address string, metrics http.Handler) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return s.serveMetrics(ctx, listener, metrics)
}

// serveMetrics serves metrics at a listener, which it closes.
func (s *Server) serveMetrics(ctx context.Context, listener net.Listener, metrics http.Handler) error {
	server := &http.Server{
		Handler: s.admission.guard(metrics), ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ConnContext: withConnection, TLSConfig: s.tls.Clone(),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	bounded := httpserver.Bound(netutil.LimitListener(listener, maxConnections),
		httpserver.Bounds{Of: s.admission.source, All: maxStrangers, Each: maxStrangersEach})
	if err := server.ServeTLS(bounded, "", ""); ctx.Err() == nil {
		return fmt.Errorf("serve metrics on %s: %w", listener.Addr(), err)
	}
	return nil
}

// withExitCode makes the exit code of a command the outermost error, where
// virtual-kubelet v1.10.0 (node/api/exec.go) looks for it; Liqo wraps it.
func withExitCode(run api.ContainerExecHandlerFunc) api.ContainerExecHandlerFunc {
	return func(ctx context.Context, namespace, pod, container string, command []string, attach api.AttachIO) error {
		err := run(ctx, namespace, pod, container, command, attach)
		if exit := utilexec.ExitError(nil); errors.As(err, &exit) {
			return exit
		}
		return err
	}
}

// unservedProtocol is the version of the exec and attach protocol that
// kube-apiserver offers from Kubernetes 1.30 on, and that virtual-kubelet v1.10.0
// does not know.
const unservedProtocol = "v5.channel.k8s.io"

// dropUnservedProtocols takes from each request the stream protocol that the
// handler below cannot speak. Instead of its own versions, virtual-kubelet
// v1.10.0 (node/api/exec.go) negotiates among those of the first header line
// that the client sends, so that it would agree on a version that it does not
// serve. The other versions come in lines of their own; they are joined because
// only the first line is read, and it is not trimmed.
func dropUnservedProtocols(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var served []string
		for _, line := range r.Header.Values(httpstream.HeaderProtocolVersion) {
			for protocol := range strings.SplitSeq(line, ",") {
				served = append(served, strings.TrimSpace(protocol))
			}
		}
		if len(served) > 0 {
			served = slices.DeleteFunc(served, func(protocol string) bool { return protocol == unservedProtocol })
			if len(served) == 0 {
				http.Error(w, "none of the offered stream protocols is supported", http.StatusForbidden)
				return
			}
			r = r.Clone(r.Context())
			r.Header.Set(httpstream.HeaderProtocolVersion, strings.Join(served, ","))
		}
		next.ServeHTTP(w, r)
	})
}
