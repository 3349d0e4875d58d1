// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemon is what programs in a cluster begin with: in which namespace they are, how they call the API server, and what their
// caches keep. A [Replica] is all of one that has nothing but probes to serve itself. It does not know what they do there.
package daemon

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/logging/capture"
	"github.com/capacitorset/liqo-broker/pkg/program"
)

// NamespaceFile is where Kubernetes tells a pod its namespace.
const NamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Namespace returns the namespace that a file tells. There is no file outside of a pod.
func Namespace(file string) (string, error) {
	own, err := os.ReadFile(file)
	return strings.TrimSpace(string(own)), err
}

// Open returns the log of a program, which the libraries use too, and how the API server is reached. What is wrong with the options of
// the log is an error of usage.
func Open(options logging.Options) (logr.Logger, *rest.Config, error) {
	log, err := logging.New(options)
	if err != nil {
		return logr.Logger{}, nil, program.Usage(err)
	}
	capture.Libraries(log)
	config, err := ctrl.GetConfig()
	if err != nil {
		return logr.Logger{}, nil, fmt.Errorf("find the Kubernetes API, by KUBECONFIG or a pod's service account: %w", err)
	}
	return log, config, nil
}

// Kinds returns a scheme of the kinds of Kubernetes, and of others.
func Kinds(others ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	failed := clientgoscheme.AddToScheme(scheme)
	for _, add := range others {
		failed = errors.Join(failed, add(scheme))
	}
	if failed != nil {
		return nil, fmt.Errorf("register the API types: %w", failed)
	}
	return scheme, nil
}

// Calls returns a copy of a config by which clients make some calls per second, and more at once, and read the kinds of a scheme leniently.
func Calls(config *rest.Config, perSecond float32, atOnce int, scheme *runtime.Scheme, log logr.Logger) *rest.Config {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst = perSecond, atOnce
	lenient.Wrap(own, scheme, log.WithName("objects"))
	return own
}
