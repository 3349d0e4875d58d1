// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/test/lab/node"
)

// cgroupPatience is how long the kernel may take to let go of killed processes.
const cgroupPatience = 10 * time.Second

// Down removes all of the lab in a state folder: processes, and with them their
// mounts and networks, control groups, files. It needs no part of the lab to work,
// and no lab in the folder is no error.
func Down(ctx context.Context, dir string) error {
	f, err := newFolder(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(string(f)); errors.Is(err, fs.ErrNotExist) {
		return removeCgroups(f)
	}
	if err := f.looksLikeLab(); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.kill(ctx); err != nil {
		return err
	}
	if err := removeCgroups(f); err != nil {
		return err
	}
	if err := os.RemoveAll(string(f)); err != nil {
		return fmt.Errorf("remove the lab's folder: %w", err)
	}
	return nil
}

// looksLikeLab protects folders that were named by mistake: it is an error if there
// is something in the folder that no lab puts there.
func (f folder) looksLikeLab() error {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return fmt.Errorf("look at the lab's folder: %w", err)
	}
	own := map[string]bool{"lock": true, "lab.json": true, "lab.json.part": true, "images": true, "wan": true, "clusters": true, "hosts": true}
	for _, e := range entries {
		if !own[e.Name()] {
			return fmt.Errorf("%s is not the folder of a lab: it has %s, which is not a lab's", f, e.Name())
		}
	}
	return nil
}

// kill ends every node. With a node's init all of its processes end.
func (f folder) kill(ctx context.Context) error {
	var nodes []string
	for _, kind := range []string{"clusters", "hosts"} {
		found, err := filepath.Glob(f.path(kind, "*"))
		if err != nil {
			return fmt.Errorf("find nodes: %w", err)
		}
		nodes = append(nodes, found...)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, dir := range append(nodes, f.path("wan")) {
		group.Go(func() error {
			init, err := loadProcess(dir)
			if errors.Is(err, fs.ErrNotExist) {
				// Whatever was started for this folder ended by itself, see node.Start.
				return nil
			}
			if err != nil {
				return err
			}
			return init.Kill(ctx)
		})
	}
	return group.Wait()
}

func removeCgroups(f folder) error {
	groups, err := node.FindCgroups(f.cgroup())
	if err != nil {
		return err
	}
	return groups.Remove(cgroupPatience)
}
