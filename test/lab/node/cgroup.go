// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cgroups are the control groups of one name: one in every hierarchy of version 1
// or, on a machine that has only version 2, the one below its root.
type Cgroups struct {
	dirs []string
	// v2 is the root of the hierarchy of version 2 if dirs are in it.
	v2 string
	// stray is where runc makes a group in a hierarchy of version 2 that has no controllers.
	stray []string
}

// FindCgroups finds the places of the control groups of that name, without making them.
func FindCgroups(name string) (Cgroups, error) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Cgroups{}, fmt.Errorf("find control groups: %w", err)
	}
	defer mounts.Close()
	var v1, v2 []string
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		place, kind := parseMount(lines.Text())
		switch kind {
		case "cgroup":
			v1 = append(v1, place)
		case "cgroup2":
			v2 = append(v2, place)
		}
	}
	c := Cgroups{}
	if len(v1) == 0 && len(v2) > 0 {
		c.v2 = v2[0]
		v1, v2 = v2[:1], nil
	}
	for _, hierarchy := range v1 {
		c.dirs = append(c.dirs, filepath.Join(hierarchy, name))
	}
	for _, hierarchy := range v2 {
		c.stray = append(c.stray, filepath.Join(hierarchy, name))
	}
	if len(c.dirs) == 0 {
		return Cgroups{}, errors.New("find control groups: none is mounted")
	}
	return c, nil
}

// Dir is the folder of the groups in one of the hierarchies, where every process of theirs is in one of them.
func (c Cgroups) Dir() string { return c.dirs[0] }

// parseMount reads a line of proc_pid_mountinfo(5).
func parseMount(line string) (place, kind string) {
	before, after, _ := strings.Cut(line, " - ")
	fields := strings.Fields(before)
	if len(fields) < 5 {
		return "", ""
	}
	kind, _, _ = strings.Cut(after, " ")
	return fields[4], kind
}

// Make makes the groups, ready for groups below them.
func (c Cgroups) Make() error {
	for _, dir := range c.dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make control group: %w", err)
		}
		// A group of the cpuset hierarchy of version 1 starts without CPUs and memory nodes.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(dir, file); c.v2 == "" && err != nil {
				return fmt.Errorf("set up control group: %w", err)
			}
		}
	}
	if c.v2 == "" {
		return nil
	}
	controllers, err := os.ReadFile(filepath.Join(c.v2, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("set up control group: %w", err)
	}
	for _, dir := range []string{c.v2, c.dirs[0]} {
		for controller := range strings.FieldsSeq(string(controllers)) {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
				return fmt.Errorf("delegate controller %s: %w", controller, err)
			}
		}
	}
	return nil
}

// Weigh gives the groups as much of a busy processor as so many others get together, beside each of which they would count as one.
func (c Cgroups) Weigh(others int) error {
	for _, dir := range c.dirs {
		for file, usual := range map[string]int{"cpu.shares": 1024, "cpu.weight": 100} {
			weight, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
			if errors.Is(err, fs.ErrNotExist) { // It is another controller's, or of the other version.
				continue
			}
			if err == nil {
				_, err = weight.WriteString(strconv.Itoa(usual * others))
				err = errors.Join(err, weight.Close())
			}
			if err != nil {
				return fmt.Errorf("weigh control group: %w", err)
			}
		}
	}
	return nil
}

// inherit copies a setting from the parent group, where there is one.
func inherit(dir, file string) error {
	value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), value, 0o644)
}

// Remove removes the groups and those below them. Their processes must have been
// killed; the kernel needs a moment to let go of them.
func (c Cgroups) Remove(patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		var errs []error
		for _, dir := range slices.Concat(c.dirs, c.stray) {
			errs = append(errs, removeTree(dir))
		}
		err := errors.Join(errs...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pollDelay)
	}
}

// removeTree removes a group after the groups in it; the files in a group go with it.
func removeTree(dir string) error {
	var groups []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			groups = append(groups, name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remove control group: %w", err)
	}
	slices.Reverse(groups)
	for _, group := range groups {
		if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove control group: %w", err)
		}
	}
	return nil
}
