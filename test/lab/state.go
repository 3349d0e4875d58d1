// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/capacitorset/liqo-broker/test/lab/build"
	"github.com/capacitorset/liqo-broker/test/lab/process"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// DefaultDir is the state folder that commands use unless told otherwise.
const DefaultDir = "/var/lib/liqo-broker-lab"

// state is what a lab remembers in its folder.
type state struct {
	Topology   topology.Topology `json:"topology"`
	Kubernetes string            `json:"kubernetes"`
	Artifacts  build.Artifacts   `json:"artifacts"`
}

// folder is the state folder of a lab, whether there is a lab in it or not:
//
//	lock                    held while a command changes the lab
//	lab.json                the state; what makes the folder a lab's
//	images/                 images that all clusters have
//	wan/                    the node that holds the WAN
//	clusters/NAME/          the node of a cluster, with its kubeconfig and its logs
//	clusters/NAME/images/   images that only this cluster has
//	hosts/NAME/             a machine outside of all clusters
//	*/process.json          the identity of a node's init
type folder string

func (f folder) path(elements ...string) string {
	return filepath.Join(append([]string{string(f)}, elements...)...)
}

func (f folder) cluster(name string) string { return f.path("clusters", name) }

// id tells labs in different folders apart.
func (f folder) id() string {
	sum := sha256.Sum256([]byte(f))
	return hex.EncodeToString(sum[:])[:8]
}

// cgroup is the name of the control group that holds those of the clusters.
func (f folder) cgroup() string { return "lab-" + f.id() }

func (f folder) load() (state, error) {
	data, err := os.ReadFile(f.path("lab.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, fmt.Errorf("there is no lab in %s: run `lab up` (%w)", f, fs.ErrNotExist)
	}
	if err != nil {
		return state{}, fmt.Errorf("load lab: %w", err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("load lab %s: %w", f.path("lab.json"), err)
	}
	return s, nil
}

// vacant is an error if there is a lab in the folder.
func (f folder) vacant() error {
	if _, err := f.load(); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there already is a lab in %s: use it, or remove it with `lab down`", f)
	}
	return nil
}

// save makes a file appear with all of its contents, or not at all.
func save(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	temp := path + ".part"
	if err := os.WriteFile(temp, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// loadProcess returns the identity that a node's folder remembers.
func loadProcess(dir string) (process.ID, error) {
	path := filepath.Join(dir, "process.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return process.ID{}, fmt.Errorf("load process: %w", err)
	}
	var id process.ID
	if err := json.Unmarshal(data, &id); err != nil {
		return process.ID{}, fmt.Errorf("load process %s: %w", path, err)
	}
	return id, nil
}

// lock makes sure that one command at a time changes the lab. The kernel drops the
// lock when the command ends in whatever way.
func (f folder) lock() (unlock func(), err error) {
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return nil, fmt.Errorf("lock lab: %w", err)
	}
	file, err := os.OpenFile(f.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock lab: %w", err)
	}
	number := int(file.Fd()) //nolint:gosec // The kernel's file numbers fit.
	if err := unix.Flock(number, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock lab: another command is changing the lab in %s; wait for it or end it: %w", f, err)
	}
	return func() { file.Close() }, nil
}
