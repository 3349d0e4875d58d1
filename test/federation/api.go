// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// apiService is the Service of deploy/examples/http-nodeport.yaml.
	apiService = "liqo-broker-http"
	// apiOperator is the service account of deploy/examples/api-operator.yaml, and apiAudience what its tokens are for.
	apiOperator, apiAudience = "liqo-broker-operator", "liqo-broker"
	// apiCA is the ConfigMap in which the broker announces its certificate.
	apiCA = "liqo-broker-api-ca"
	// APIName is what the certificate of the HTTP API is for.
	APIName = "liqo-broker.liqo-broker.svc"
)

// ExposeAPI makes the broker's HTTP API reachable from the other clusters, on a port of the broker's node, and makes somebody who
// may use it. It returns when they get an answer: the node opens a port some time after it was asked to.
func (f *Federation) ExposeAPI(ctx context.Context) error {
	if err := f.apiExamples(ctx, "apply"); err != nil {
		return err
	}
	return Until(ctx, time.Minute, func(ctx context.Context) error {
		token, err := f.APIToken(ctx)
		if err != nil {
			return err
		}
		_, _, err = f.AskAPI(ctx, token, "/api/clusters")
		return err
	})
}

// HideAPI undoes it.
func (f *Federation) HideAPI(ctx context.Context) error {
	return f.apiExamples(ctx, "delete", "--ignore-not-found")
}

func (f *Federation) apiExamples(ctx context.Context, command ...string) error {
	for _, example := range []string{"http-nodeport.yaml", "api-operator.yaml"} {
		if _, err := f.Broker.Kubectl(ctx, append(command, "--filename="+f.path("deploy", "examples", example))...); err != nil {
			return err
		}
	}
	return nil
}

// APIAddress returns host and port of the broker's HTTP API for pods of other clusters.
func (f *Federation) APIAddress(ctx context.Context) (string, error) {
	var service corev1.Service
	if err := f.Broker.Get(ctx, client.ObjectKey{Namespace: brokerNamespace, Name: apiService}, &service); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%d", f.Broker.Lab.Address, service.Spec.Ports[0].NodePort), nil
}

// APIToken returns a token of somebody who may use the HTTP API.
func (f *Federation) APIToken(ctx context.Context) (string, error) {
	return f.token(ctx, apiOperator, apiAudience)
}

// token returns a token of a service account of the broker's namespace.
func (f *Federation) token(ctx context.Context, name string, audiences ...string) (string, error) {
	return f.Broker.Token(ctx, brokerNamespace, name, audiences...)
}

// Token returns a token of a service account of the cluster: for its API server, or for others.
func (c *Cluster) Token(ctx context.Context, namespace, name string, audiences ...string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("get a token of %s/%s of %s: %w", namespace, name, c.Name, err)
	}
	return request.Status.Token, nil
}

// apiStatus stands between what the HTTP API answers and the status.
const apiStatus = "\n--status--"

// AskAPI asks the broker's HTTP API from a pod of the consumer, over TLS, with a token, or with none if it is empty, and with further
// arguments of curl. The certificate must be one that the broker has announced.
func (f *Federation) AskAPI(ctx context.Context, token, path string, args ...string) (status, body string, err error) {
	address, err := f.APIAddress(ctx)
	if err != nil {
		return "", "", err
	}
	var announced corev1.ConfigMap
	if err := f.Broker.Get(ctx, client.ObjectKey{Namespace: brokerNamespace, Name: apiCA}, &announced); err != nil {
		return "", "", err
	}
	// Several may ask at the same time, each with a file of its own.
	const script = `ca=$(mktemp) && trap 'rm -f "$ca"' EXIT && printf %s "$0" >"$ca" && curl --silent --show-error --max-time 20 --cacert "$ca" "$@"`
	command := append([]string{"exec", "--namespace=default", "tools", "--", "sh", "-c", script, announced.Data["ca.crt"]}, args...)
	if token != "" {
		command = append(command, "--header", "Authorization: Bearer "+token)
	}
	command = append(command, "--connect-to", "::"+address, "--write-out", apiStatus+"%{http_code}", "https://"+APIName+path)
	output, err := f.Consumer.Kubectl(ctx, command...)
	if err != nil {
		return "", "", err
	}
	at := strings.LastIndex(output, apiStatus)
	if at < 0 {
		return "", "", fmt.Errorf("GET %s: curl printed %q", path, output)
	}
	return output[at+len(apiStatus):], output[:at], nil
}
