// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mountRoot gives the node a root file system that shows the machine's programs,
// read-only, and nothing else of it. All mounts are private to the node.
func mountRoot(spec Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	root := filepath.Join(spec.Dir, "root")
	m := mounter{root: root}
	m.mount("tmpfs", "", "tmpfs", 0, "mode=755")
	m.system()
	etc := filepath.Join(spec.Dir, "etc")
	m.mount("overlay", "etc", "overlay", 0,
		fmt.Sprintf("lowerdir=/etc,upperdir=%s,workdir=%s", filepath.Join(etc, "upper"), filepath.Join(etc, "work")))
	m.mount("tmpfs", "run", "tmpfs", 0, "mode=755")
	m.mount("tmpfs", "tmp", "tmpfs", 0, "mode=1777")
	m.bind(filepath.Join(spec.Dir, "var"), "var", false)
	m.bind(spec.Dir, "lab", false)
	for target, source := range spec.Binds {
		m.bind(source, strings.TrimPrefix(target, "/"), true)
	}
	for i, source := range spec.Stores {
		m.bind(source, storePath(i)[1:], true)
	}
	m.folder("root")
	m.folder("run/lock")
	m.folder("run/netns")
	for name, content := range spec.Files {
		m.write("etc/"+name, content)
	}
	for name, value := range spec.Shadows {
		m.write("run/shadows/"+name, value+"\n")
		m.bindFile(filepath.Join(root, "run/shadows", name), "proc/sys/"+name)
	}
	if m.err != nil {
		return m.err
	}
	return pivot(root)
}

// storePath is where the node sees its i-th image store.
func storePath(i int) string { return fmt.Sprintf("/images/%d", i) }

// pivot makes root the root and drops everything else. kubelet and containerd
// want their mounts to reach the containers, so the tree is shared within the node.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("enter new root: %w", err)
	}
	// The old root ends up on top of the new one (pivot_root(2), "pivot_root(".", ".")").
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("drop old root: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts: %w", err)
	}
	return os.Chdir("/")
}

// mounter mounts below a root and keeps the first error, after which it does nothing.
type mounter struct {
	root string
	err  error
}

// system mounts what every Linux system has.
func (m *mounter) system() {
	m.bind("/usr", "usr", true)
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if target, err := os.Readlink("/" + name); err == nil {
			m.do("link "+name, os.Symlink(target, filepath.Join(m.root, name)))
		} else if _, err := os.Stat("/" + name); err == nil {
			m.bind("/"+name, name, true)
		}
	}
	m.mount("proc", "proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	m.mount("sysfs", "sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	m.tree("/sys/fs/cgroup", "sys/fs/cgroup")
	m.tree("/dev", "dev")
}

func (m *mounter) mount(source, target, kind string, flags uintptr, data string) {
	m.folder(target)
	if m.err == nil {
		m.do("mount "+kind+" on /"+target, unix.Mount(source, filepath.Join(m.root, target), kind, flags, data))
	}
}

// bind shows a folder at the target.
func (m *mounter) bind(source, target string, readOnly bool) {
	m.mount(source, target, "", unix.MS_BIND, "")
	if readOnly {
		m.mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
}

// tree shows a folder and everything mounted below it.
func (m *mounter) tree(source, target string) {
	m.mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
}

func (m *mounter) bindFile(source, target string) {
	if m.err == nil {
		m.do("bind /"+target, unix.Mount(source, filepath.Join(m.root, target), "", unix.MS_BIND, ""))
	}
}

func (m *mounter) folder(name string) {
	if m.err == nil {
		m.do("make folder", os.MkdirAll(filepath.Join(m.root, name), 0o755))
	}
}

func (m *mounter) write(name, content string) {
	m.folder(filepath.Dir(name))
	if m.err == nil {
		m.do("write file", os.WriteFile(filepath.Join(m.root, name), []byte(content), 0o644))
	}
}

func (m *mounter) do(deed string, err error) {
	if m.err == nil && err != nil {
		m.err = fmt.Errorf("%s: %w", deed, err)
	}
}
