// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package virtualkubelet composes Liqo's virtual kubelet out of Liqo's packages, with these
// differences: it shows pods that a broker runs on one of its providers under an address
// that reaches them; it reflects only namespaces that this cluster offloads, and of the one
// in which Liqo itself runs only one Service; its API asks who calls; its own events stay
// in this cluster; and what a foreign cluster answers is bounded.
//
// Reflection of objects, the virtual node and the identity at the foreign
// cluster are Liqo's. How an address is computed is package addressing's, and
// how the broker is asked is package remoteipam/client's.
//
// Each of the packages below does one part, and gets what it needs as values: address, transit,
// remotepods, guard, events, node and serve. This one has the options, and puts the parts together.
package virtualkubelet

import (
	"fmt"
	"net"
	"strings"

	"github.com/liqotech/liqo/cmd/virtual-kubelet/root"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/spf13/pflag"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/guard"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/serve"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// Options are the flags of the virtual kubelet: all of Liqo's, and our own.
type Options struct {
	*root.Opts

	// RemoteIPAM tells where brokers serve a remote IPAM. Without any, a pod that
	// is not the foreign cluster's own has no address here.
	RemoteIPAM remoteipam.Servers
	// LiqoNamespace is the namespace in which Liqo runs in this cluster; empty if it is
	// where Liqo's IPAM is.
	LiqoNamespace string
	// EndpointsPerCluster bounds how many endpoint addresses of each cluster that offloads
	// to this one are passed on.
	EndpointsPerCluster int
	// ClientCA tells which authority signs the certificates with which the API server of
	// this cluster calls kubelets: NAMESPACE/CONFIGMAP/KEY.
	ClientCA string
	// MetricsAuthentication serves the metrics over TLS, to whoever may get those of the virtual node; else over plain HTTP, to everybody.
	MetricsAuthentication bool
}

// endpointsPerCluster is far more than Services of one consumer have on one provider;
// Liqo's IPAM keeps all relay addresses of a cluster in one object, in which about 9,000
// have room.
const endpointsPerCluster = 1000

// rolePatch gives the virtual kubelet the rights that Liqo's role for it lacks.
const rolePatch = "patches/liqo-install/virtual-kubelet-role.json"

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Opts: root.NewOpts(), EndpointsPerCluster: endpointsPerCluster, ClientCA: serve.DefaultClientCA, MetricsAuthentication: true,
	}
}

// AddFlags binds the options to flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	root.InstallFlags(flags, o.Opts)
	flags.Var(&o.RemoteIPAM, "remote-ipam",
		"Address of a broker's remote IPAM; may be repeated. Ignored if the foreign cluster is another one")
	flags.StringVar(&o.LiqoNamespace, "liqo-namespace", o.LiqoNamespace,
		"The namespace in which Liqo runs; only the Service of the IPAM is reflected from it. By default that of the Service in --ipam-server, "+
			"or "+liqo.DefaultNamespace+" if that is not a Service")
	flags.IntVar(&o.EndpointsPerCluster, "endpoints-per-cluster", o.EndpointsPerCluster,
		"Maximum number of endpoint addresses of each cluster that offloads to this one that are passed on to the foreign cluster")
	flags.StringVar(&o.ClientCA, "kubelet-client-ca", o.ClientCA,
		"CA that signs the client certificates that the kubelet API accepts, as NAMESPACE/CONFIGMAP/KEY")
	flags.BoolVar(&o.MetricsAuthentication, "metrics-authentication", o.MetricsAuthentication,
		"Serve the metrics over TLS, to callers that may get nodes/metrics of the virtual node; if false over plain HTTP, to everybody, as Liqo "+
			"does")
}

// guardedNamespace returns the namespace of which only the Service of the IPAM is reflected.
func (o *Options) guardedNamespace() string {
	if o.LiqoNamespace != "" {
		return o.LiqoNamespace
	}
	// Liqo's chart writes NAME.NAMESPACE:PORT; any other IPAM may be anywhere.
	host, _, err := net.SplitHostPort(o.LiqoIpamServer)
	name, rest, ok := strings.Cut(host, ".")
	if err != nil || !ok || name != guard.IPAMService {
		return liqo.DefaultNamespace
	}
	namespace, _, _ := strings.Cut(rest, ".")
	return namespace
}

// Validate reports the first option without which the virtual kubelet cannot
// start.
func (o *Options) Validate() error {
	switch {
	case o.HomeCluster.ClusterID == "":
		return fmt.Errorf("--home-cluster-id is missing")
	case o.ForeignCluster.ClusterID == "":
		return fmt.Errorf("--foreign-cluster-id is missing")
	case o.ForeignCluster.ClusterName == "":
		return fmt.Errorf("--foreign-cluster-name is missing")
	case o.RemoteKubeconfigSecretName == "":
		return fmt.Errorf("--foreign-kubeconfig-secret-name is missing")
	case net.ParseIP(o.NodeIP) == nil:
		return fmt.Errorf("--node-ip=%s: not an IP address", o.NodeIP)
	case o.EndpointsPerCluster < 1:
		return fmt.Errorf("--endpoints-per-cluster=%d: must be positive", o.EndpointsPerCluster)
	}
	if _, _, _, err := serve.SplitClientCA(o.ClientCA); err != nil {
		return err
	}
	_, err := o.reflectors()
	return err
}

// reflectors returns the number of workers and the reflection policy of each
// kind that is reflected.
func (o *Options) reflectors() (map[generic.ResourceReflected]*generic.ReflectorConfig, error) {
	configs := make(map[generic.ResourceReflected]*generic.ReflectorConfig, len(generic.Reflectors))
	for _, kind := range generic.Reflectors {
		policy := root.DefaultReflectorsTypes[kind]
		if chosen, ok := o.ReflectorsType[string(kind)]; ok {
			policy = consts.ReflectionType(*chosen)
			if policy != consts.DenyList && policy != consts.AllowList {
				return nil, fmt.Errorf("--%s-reflection-type=%s: use %s or %s", kind, policy, consts.DenyList, consts.AllowList)
			}
		}
		configs[kind] = &generic.ReflectorConfig{NumWorkers: *o.ReflectorsWorkers[string(kind)], Type: policy}
	}
	return configs, nil
}
