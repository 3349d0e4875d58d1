// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"

	"github.com/capacitorset/liqo-broker/test/lab/node"
)

// etcFiles are the node's own files in /etc. The name servers of the machine must
// not be in a pod's reach.
func (c Cluster) etcFiles() map[string]string {
	return map[string]string{
		"hosts":       fmt.Sprintf("127.0.0.1 localhost %s\n", c.Name),
		"hostname":    c.Name + "\n",
		"resolv.conf": "",
	}
}

// configFiles are the configuration of the programs, below /lab/config. None of it
// is in /etc, where the machine may have files for the same programs.
func (c Cluster) configFiles() map[string]string {
	return map[string]string{
		"audit.yaml":                     auditPolicy,
		"containerd.toml":                containerdConfig,
		"registries/_default/hosts.toml": registryConfig,
		"cni/10-lab.conflist":            c.networkConfig(),
		"kubelet.yaml":                   c.kubeletConfig(),
		"kube-proxy.yaml":                c.kubeProxyConfig(),
	}
}

// logsDir is where the programs of the node write their logs.
const logsDir = "/lab/logs/"

// auditPolicy has the API server write down who has written which objects of the project, once it is done, and nothing else. Statuses are
// what programs write, and most of all that is written.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
  - {level: None, resources: [{group: brokering.liqo.io, resources: ["*/status"]}]}
  - {level: Metadata, verbs: [create, update, patch, delete, deletecollection], resources: [{group: brokering.liqo.io}]}
  - {level: None}
`

// RegistriesDir is where containerd and ctr find, in the node, which registry to ask.
const RegistriesDir = "/lab/config/registries"

// registryConfig makes the node's registry the one for all images.
const registryConfig = `server = "http://` + node.RegistryAddress + `"

[host."http://` + node.RegistryAddress + `"]
  capabilities = ["pull", "resolve"]
`

func (c Cluster) networkConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0", "name": "lab",
  "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "mtu": 1500,
     "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks",
              "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, c.NodePodCIDR().String())
}

// containerdConfig keeps runc from lowering a process's oom_score_adj, which needs
// CAP_SYS_RESOURCE, and drops the layers of an image once they are unpacked.
const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = "` + runtimeSocket + `"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "lab.local/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "` + RegistriesDir + `"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/lab/config/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    discard_unpacked_layers = true
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`

// kubeletConfig lets kubelets of 1.35 and later run on a machine with the first version of control groups; those of 1.28 do not know the
// field, and ignore it.
func (c Cluster) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /lab/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: /lab/pki/kubelet.crt
tlsPrivateKeyFile: /lab/pki/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: /%s
cgroupsPerQOS: true
enforceNodeAllocatable: [pods]
failSwapOn: false
failCgroupV1: false
clusterDNS: [%s]
clusterDomain: cluster.local
resolvConf: /etc/resolv.conf
containerRuntimeEndpoint: unix://%s
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: true
oomScoreAdj: 0
maxPods: 110
serializeImagePulls: false
nodeStatusUpdateFrequency: 10s
syncFrequency: 30s
fileCheckFrequency: 60s
protectKernelDefaults: false
`, c.Cgroup, c.DNSIP(), runtimeSocket)
}

// kubeProxyConfig leaves connection tracking alone, because its limits are the machine's.
func (c Cluster) kubeProxyConfig() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: /lab/config/kube-proxy.conf}
clusterCIDR: %s
hostnameOverride: %s
oomScoreAdj: 0
bindAddress: 0.0.0.0
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {masqueradeAll: false, syncPeriod: 30s, minSyncPeriod: 1s}
`, c.PodCIDR, c.Name)
}
