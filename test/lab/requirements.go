// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// programs are what a lab takes from the machine, with the Debian package of each.
var programs = []struct{ path, debian string }{
	{"busybox", "busybox-static"}, {"conntrack", "conntrack"}, {"containerd", "containerd"}, {"ctr", "containerd"}, {"curl", "curl"},
	{"etcd", "etcd-server"}, {"ip", "iproute2"}, {"iperf3", "iperf3"}, {"ipset", "ipset"}, {"iptables", "iptables"},
	{"openssl", "openssl"}, {"ping", "iputils-ping"}, {"runc", "runc"}, {"ss", "iproute2"}, {"tcpdump", "tcpdump"},
	{"wg", "wireguard-tools"}, {"wireguard-go", "wireguard-go"}, {"/usr/lib/cni/bridge", "containernetworking-plugins"},
}

// inotifyPerCluster is what a cluster with Liqo and a few peerings was seen to use, with some room.
const inotifyPerCluster = 22

// Check reports everything that keeps Up from making such a lab in the folder, so
// that nobody has to wait for a build to hear it.
func Check(dir string, t topology.Topology) error {
	f, err := newFolder(dir)
	if err != nil {
		return err
	}
	if err := f.vacant(); err != nil {
		return err
	}
	return errors.Join(t.Validate(), checkMachine(len(t.Clusters)))
}

func checkMachine(clusters int) error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("a lab needs root: run it as root"))
	}
	var missing, packages []string
	for _, p := range programs {
		if !installed(p.path) {
			missing, packages = append(missing, p.path), append(packages, p.debian)
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("programs are missing: %s; on Debian run: apt-get install --no-install-recommends %s",
			strings.Join(missing, ", "), strings.Join(packages, " ")))
	}
	return errors.Join(append(errs, checkInotify(clusters))...)
}

// installed also looks where programs for administrators are, which may not be in PATH.
func installed(program string) bool {
	for _, dir := range []string{"", "/usr/sbin", "/usr/bin"} {
		if filepath.IsAbs(program) && dir != "" {
			continue
		}
		if _, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return true
		}
	}
	return false
}

// checkInotify compares what the kernel still grants root with what the clusters
// will use. Past the limit, kubelets and API servers fail in ways that do not tell why.
func checkInotify(clusters int) error {
	const file = "/proc/sys/fs/inotify/max_user_instances"
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the limit of inotify instances: %w", err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("read the limit of inotify instances: %w", err)
	}
	used := inotifyInstances()
	if need := clusters * inotifyPerCluster; limit-used < need {
		return fmt.Errorf("%d clusters need about %d inotify instances, and %d of %d are in use: end what uses them, or raise "+
			"fs.inotify.max_user_instances",
			clusters, need, used, limit)
	}
	return nil
}

// inotifyInstances counts those of all processes; a lab and everything in it is root's.
func inotifyInstances() int {
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0
	}
	count := 0
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == "anon_inode:inotify" {
			count++
		}
	}
	return count
}
