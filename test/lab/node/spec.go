// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node makes one machine of a lab out of namespaces: its own network,
// mounts, processes, host name and root file system, with an init of its own that
// starts the machine's programs, keeps them running and serves images to them.
// When init ends, by whatever cause, the kernel ends everything in the node.
//
// It does not know Kubernetes, nor which programs it runs.
package node

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// Spec describes a node. Paths outside of it are of the machine's file system,
// Args and After are as seen in the node.
type Spec struct {
	Name string `json:"name"`
	// Dir is a folder for the node, seen in it as /lab. The node keeps there:
	// logs, etc and var. Its programs find there what the caller has put there.
	Dir string `json:"dir"`
	// Address is the node's on the WAN, with the length of the WAN's prefix.
	// A node without one has no interface but loopback.
	Address netip.Prefix `json:"address"`
	Gateway netip.Addr   `json:"gateway"`
	// Binds makes folders visible in the node, read-only: place in the node to source.
	Binds map[string]string `json:"binds,omitempty"`
	// Files are written into the node's /etc: name below /etc to content.
	Files map[string]string `json:"files,omitempty"`
	// Sysctls are kernel settings of the node's network namespace, below /proc/sys/net.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Shadows are kernel settings of the whole machine, below /proc/sys, that the
	// node's programs may read and write without changing the machine: name to value.
	Shadows map[string]string `json:"shadows,omitempty"`
	// Setup are commands that run once, in order, before any component.
	Setup [][]string `json:"setup,omitempty"`
	// Components are the programs that always run.
	Components []Component `json:"components,omitempty"`
	// Stores are folders of images that the node can pull, the first one first.
	// If there are any, a registry serves them on RegistryAddress.
	Stores []string `json:"stores,omitempty"`
	// Forward is the address in the node where a connection to the listener that
	// Start was given ends.
	Forward string `json:"forward,omitempty"`
}

// Component is a program that runs as long as the node does.
type Component struct {
	// Name is the name of its log file in /lab/logs, without ".log".
	Name string   `json:"name"`
	Args []string `json:"args"`
	// After is what must be there before the program is started: a socket that accepts
	// connections, "tcp:HOST:PORT" or "unix:PATH", or an address that answers with
	// success, "https://...", whatever its certificate. Empty does not wait.
	After string `json:"after,omitempty"`
	// Nice is the niceness of the program's session beside others, from -20 to 19.
	Nice int `json:"nice,omitempty"`
}

// RegistryAddress is where a node's registry listens, in the node.
const RegistryAddress = "127.0.0.1:5000"

// LogPath is the log file of a component, or of "init" itself.
func (s Spec) LogPath(component string) string {
	return filepath.Join(s.Dir, "logs", component+".log")
}

func (s Spec) path() string { return filepath.Join(s.Dir, "node.json") }

func (s Spec) save() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode node %s: %w", s.Name, err)
	}
	if err := os.WriteFile(s.path(), data, 0o600); err != nil {
		return fmt.Errorf("save node %s: %w", s.Name, err)
	}
	return nil
}

func loadSpec(path string) (Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Spec{}, fmt.Errorf("load node: %w", err)
	}
	var s Spec
	if err := json.Unmarshal(data, &s); err != nil {
		return Spec{}, fmt.Errorf("load node %s: %w", path, err)
	}
	return s, nil
}
