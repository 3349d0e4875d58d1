// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes says how the programs of Kubernetes have to be started to be
// one cluster on one node: certificates, arguments, configuration files. It makes
// files and values; starting the programs is the node's part.
package kubernetes

import (
	"crypto/x509/pkix"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/pki"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// Cluster is a cluster to be started.
type Cluster struct {
	topology.Cluster
	WAN     netip.Prefix
	Gateway netip.Addr
	// Dir is the folder of the node, which its programs see as /lab.
	Dir string
	// Cgroup is the name of the control group that pods go under.
	Cgroup string
	// Programs is the folder of Kubernetes' programs.
	Programs string
	// Stores are the image stores that pods can use, the first one first.
	Stores []string
	// HostPort is the port on 127.0.0.1 where the API server can be reached from outside.
	HostPort int
}

// Kubeconfig is the administrator's kubeconfig for use outside of the node.
func (c Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Spec describes the node of the cluster.
func (c Cluster) Spec() node.Spec {
	return node.Spec{
		Name: c.Name, Dir: c.Dir, Address: netip.PrefixFrom(c.Address, c.WAN.Bits()), Gateway: c.Gateway,
		Binds: map[string]string{"/opt/kubernetes": c.Programs},
		Files: c.etcFiles(),
		Sysctls: map[string]string{
			"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
			"ipv4/conf/all/route_localnet": "1",
		},
		// What kubelet wants and would otherwise change (setupKernelTunables in its package cm).
		Shadows: map[string]string{
			"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
			"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
		},
		// Only what leaves by the WAN is masqueraded; the traffic on Liqo's own routes must keep its addresses.
		Setup: [][]string{
			{"iptables", "-t", "nat", "-A", "POSTROUTING", "-s", c.PodCIDR.String(), "-o", node.Interface, "-j", "MASQUERADE"},
		},
		Components: c.components(),
		Stores:     c.Stores,
		Forward:    apiServerAddress,
	}
}

// WriteFiles writes the certificates, the kubeconfigs and the configuration files.
func (c Cluster) WriteFiles() error {
	for _, dir := range []string{"pki", "config"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, dir), 0o755); err != nil {
			return fmt.Errorf("write files of cluster %s: %w", c.Name, err)
		}
	}
	if err := c.writeCertificates(); err != nil {
		return fmt.Errorf("write certificates of cluster %s: %w", c.Name, err)
	}
	for name, content := range c.configFiles() {
		path := filepath.Join(c.Dir, "config", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write files of cluster %s: %w", c.Name, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("write files of cluster %s: %w", c.Name, err)
		}
	}
	return nil
}

func (c Cluster) writeCertificates() error {
	authority, err := pki.NewAuthority("kubernetes-" + c.Name)
	if err != nil {
		return err
	}
	front, err := pki.NewAuthority("front-proxy-" + c.Name)
	if err != nil {
		return err
	}
	apiServer, err := authority.Server(pkix.Name{CommonName: "kube-apiserver"},
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost", c.Name,
		"127.0.0.1", c.Address.String(), c.APIServerIP().String())
	if err != nil {
		return err
	}
	kubelet, err := authority.Server(pkix.Name{CommonName: "system:node:" + c.Name, Organization: []string{"system:nodes"}},
		c.Name, "127.0.0.1", c.Address.String())
	if err != nil {
		return err
	}
	toKubelet, err := authority.Client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	frontProxy, err := front.Client("front-proxy-client")
	if err != nil {
		return err
	}
	private, public, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	for name, pair := range map[string]pki.Pair{
		"ca": authority.Pair, "front-ca": front.Pair, "apiserver": apiServer, "kubelet": kubelet,
		"apiserver-kubelet-client": toKubelet, "front-proxy-client": frontProxy,
		"service-accounts": {Certificate: public, Key: private},
	} {
		if err := pair.Save(filepath.Join(c.Dir, "pki", name)); err != nil {
			return err
		}
	}
	return c.writeKubeconfigs(authority)
}

func (c Cluster) writeKubeconfigs(authority *pki.Authority) error {
	for file, user := range map[string]struct {
		name   string
		groups []string
	}{
		"admin.conf":              {"admin", []string{"system:masters"}},
		"controller-manager.conf": {"system:kube-controller-manager", nil},
		"scheduler.conf":          {"system:kube-scheduler", nil},
		"kubelet.conf":            {"system:node:" + c.Name, []string{"system:nodes"}},
		"kube-proxy.conf":         {"system:kube-proxy", nil},
	} {
		pair, err := authority.Client(user.name, user.groups...)
		if err != nil {
			return err
		}
		if err := authority.WriteKubeconfig(filepath.Join(c.Dir, "config", file), c.Name, "https://"+apiServerAddress, pair); err != nil {
			return err
		}
		if user.name == "admin" {
			server := fmt.Sprintf("https://127.0.0.1:%d", c.HostPort)
			if err := authority.WriteKubeconfig(c.Kubeconfig(), c.Name, server, pair); err != nil {
				return err
			}
		}
	}
	return nil
}
