// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import "github.com/capacitorset/liqo-broker/test/lab/node"

// Addresses in the node.
const (
	apiServerAddress = "127.0.0.1:6443"
	etcdAddress      = "127.0.0.1:2379"
	etcdPeerAddress  = "127.0.0.1:2380"
	runtimeSocket    = "/run/containerd/containerd.sock"
)

// AuditLog is the component whose log is the API server's audit log.
const AuditLog = "audit"

// components are the programs of the node. Each waits for what it cannot do
// without, so that none starts only to fail.
func (c Cluster) components() []node.Component {
	const afterAPIServer = "https://" + apiServerAddress + "/readyz"
	// All others wait for these two; who cannot renew a lease in time begins again, and asks for more.
	const ahead = -10
	return []node.Component{
		{Name: "etcd", Args: c.etcd(), Nice: ahead},
		{Name: "kube-apiserver", Args: c.apiServer(), After: "tcp:" + etcdAddress, Nice: ahead},
		{Name: "containerd", Args: []string{"containerd", "--config", "/lab/config/containerd.toml"}},
		{Name: "kube-controller-manager", Args: c.controllerManager(), After: afterAPIServer},
		{Name: "kube-scheduler", Args: c.scheduler(), After: afterAPIServer},
		{Name: "kubelet", Args: c.kubelet(), After: "unix:" + runtimeSocket},
		{Name: "kube-proxy", Args: []string{"/opt/kubernetes/kube-proxy", "--config=/lab/config/kube-proxy.yaml"}, After: afterAPIServer},
	}
}

func (c Cluster) etcd() []string {
	const client, peer = "http://" + etcdAddress, "http://" + etcdPeerAddress
	return []string{
		"etcd", "--name", c.Name, "--data-dir", "/var/lib/etcd",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", c.Name + "=" + peer,
		// The data need not survive the machine, and four clusters share one disk.
		"--unsafe-no-fsync", "--snapshot-count", "5000", "--auto-compaction-mode=revision", "--auto-compaction-retention=1000",
		"--logger=zap", "--log-level=warn",
	}
}

func (c Cluster) apiServer() []string {
	return []string{
		"/opt/kubernetes/kube-apiserver", "--etcd-servers=http://" + etcdAddress,
		"--advertise-address=" + c.Address.String(), "--bind-address=0.0.0.0", "--secure-port=6443",
		"--service-cluster-ip-range=" + c.ServiceCIDR.String(), "--service-node-port-range=30000-32767",
		"--allow-privileged=true", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=/lab/pki/ca.crt",
		"--tls-cert-file=/lab/pki/apiserver.crt", "--tls-private-key-file=/lab/pki/apiserver.key",
		"--kubelet-client-certificate=/lab/pki/apiserver-kubelet-client.crt", "--kubelet-client-key=/lab/pki/apiserver-kubelet-client.key",
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=/lab/pki/service-accounts.crt", "--service-account-signing-key-file=/lab/pki/service-accounts.key",
		"--requestheader-client-ca-file=/lab/pki/front-ca.crt", "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=/lab/pki/front-proxy-client.crt", "--proxy-client-key-file=/lab/pki/front-proxy-client.key",
		"--enable-aggregator-routing=true", "--profiling=false", "--v=1",
		// Two files of at most 4 MB.
		"--audit-policy-file=/lab/config/audit.yaml", "--audit-log-path=" + logsDir + AuditLog + ".log",
		"--audit-log-maxsize=4", "--audit-log-maxbackup=1",
	}
}

func (c Cluster) controllerManager() []string {
	const config = "/lab/config/controller-manager.conf"
	return []string{
		"/opt/kubernetes/kube-controller-manager", "--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials=true",
		"--root-ca-file=/lab/pki/ca.crt", "--service-account-private-key-file=/lab/pki/service-accounts.key",
		"--cluster-signing-cert-file=/lab/pki/ca.crt", "--cluster-signing-key-file=/lab/pki/ca.key",
		"--allocate-node-cidrs=true", "--cluster-cidr=" + c.PodCIDR.String(), "--service-cluster-ip-range=" + c.ServiceCIDR.String(),
		"--node-cidr-mask-size=24", "--cluster-name=" + c.Name, "--profiling=false", "--v=1",
	}
}

func (c Cluster) scheduler() []string {
	const config = "/lab/config/scheduler.conf"
	return []string{
		"/opt/kubernetes/kube-scheduler", "--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false", "--v=1",
	}
}

func (c Cluster) kubelet() []string {
	return []string{
		"/opt/kubernetes/kubelet", "--config=/lab/config/kubelet.yaml", "--kubeconfig=/lab/config/kubelet.conf",
		"--hostname-override=" + c.Name, "--node-ip=" + c.Address.String(), "--root-dir=/var/lib/kubelet",
		// Tells the node from Liqo's virtual nodes.
		"--node-labels=lab/real=true", "--v=2",
	}
}
