// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/capacitorset/liqo-broker/test/lab/pki"
)

// onCreated is called with the name of each namespace that was created, before its creator gets the answer.
type onCreated func(ctx context.Context, namespace string) error

// A proxy stands in front of an API server. Who has its token is the administrator; all others are whom the API server
// takes them for.
type proxy struct {
	target          *url.URL
	token           string
	admin, stranger http.RoundTripper
	created         onCreated
	// node is the only node that is listed, without the taint of virtual nodes: tests that choose a node for their pods choose
	// that one. If it is empty, all are, as they are.
	node string
}

// newProxy returns a proxy of the API server that the administrator's config leads to.
func newProxy(config *rest.Config, node string, created onCreated) (*proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("parse the address of the API server: %w", err)
	}
	// SPDY, which kubectl exec may speak, is an upgrade of HTTP/1.1.
	administrator := rest.CopyConfig(config)
	administrator.NextProtos = []string{"http/1.1"}
	admin, err := rest.TransportFor(administrator)
	if err != nil {
		return nil, err
	}
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.NextProtos = []string{"http/1.1"}
	stranger, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, err
	}
	return &proxy{target: target, token: rand.Text(), admin: admin, stranger: stranger, node: node, created: created}, nil
}

// RoundTrip implements http.RoundTripper: it passes a request on as the one who sent it.
func (p *proxy) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Authorization") != "Bearer "+p.token {
		return p.stranger.RoundTrip(request)
	}
	request.Header.Del("Authorization")
	return p.admin.RoundTrip(request)
}

// handler serves the proxy.
func (p *proxy) handler() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.target)
			if p.node != "" && listsNodes(r.Out) {
				r.Out.Header.Set("Accept", "application/json")
				r.Out.Header.Del("Accept-Encoding")
			}
		},
		Transport:      p,
		FlushInterval:  -1, // Watches and logs are streams.
		ModifyResponse: p.edit,
		ErrorLog:       log.New(io.Discard, "", 0), // Clients that go away are none of ours.
	}
}

// edit does what is to be done before a client gets an answer.
func (p *proxy) edit(response *http.Response) error {
	switch request := response.Request; {
	case request.Method == http.MethodPost && request.URL.Path == "/api/v1/namespaces" && response.StatusCode == http.StatusCreated &&
		!request.URL.Query().Has("dryRun"):
		return p.note(response)
	case p.node != "" && listsNodes(request) && response.StatusCode == http.StatusOK:
		return p.showOne(response)
	}
	return nil
}

// note calls created for an answer that says that a namespace was created.
func (p *proxy) note(response *http.Response) error {
	body, err := takeBody(response)
	if err != nil {
		return fmt.Errorf("read the answer to the creation of a namespace: %w", err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return fmt.Errorf("decode the answer to the creation of a namespace: %w", err)
	}
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return fmt.Errorf("the answer to the creation of a namespace is a %T", object)
	}
	setBody(response, body)
	return p.created(response.Request.Context(), namespace.Name)
}

// listsNodes reports whether a request lists nodes once.
func listsNodes(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return request.Method == http.MethodGet && request.URL.Path == "/api/v1/nodes" && (watch == "" || watch == "false" || watch == "0")
}

// showOne leaves one node in a list of nodes.
func (p *proxy) showOne(response *http.Response) error {
	body, err := takeBody(response)
	if err != nil {
		return fmt.Errorf("read a list of nodes: %w", err)
	}
	var nodes corev1.NodeList
	if err := json.Unmarshal(body, &nodes); err != nil {
		return fmt.Errorf("decode a list of nodes: %w", err)
	}
	nodes.Items = slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return node.Name != p.node })
	for i := range nodes.Items {
		spec := &nodes.Items[i].Spec
		spec.Taints = slices.DeleteFunc(spec.Taints, func(taint corev1.Taint) bool { return taint.Key == consts.VirtualNodeTolerationKey })
	}
	if body, err = json.Marshal(&nodes); err != nil {
		return fmt.Errorf("encode a list of nodes: %w", err)
	}
	setBody(response, body)
	return nil
}

// takeBody reads all of an answer.
func takeBody(response *http.Response) ([]byte, error) {
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

// setBody gives an answer another body.
func setBody(response *http.Response, body []byte) {
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

// serve serves the proxy on this machine until the context ends, and writes a kubeconfig that leads to it.
func (p *proxy) serve(ctx context.Context, kubeconfig string) (stop func(), err error) {
	authority, err := pki.NewAuthority("conformance")
	if err != nil {
		return nil, err
	}
	pair, err := authority.Server(pkix.Name{CommonName: "conformance"}, "127.0.0.1")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	err = writeKubeconfig(kubeconfig, "https://"+listener.Addr().String(), authority.Certificate, p.token)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	server := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}, ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, "", "") // It ends when the server is closed.
	}()
	return func() {
		_ = server.Close()
		<-done
	}, nil
}

// writeKubeconfig writes a kubeconfig that only its owner may read.
func writeKubeconfig(path, server string, authority []byte, token string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	const name = "conformance"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}
