// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// base is what a container finds in the root file system: enough to look around
// in a network, and what Liqo's gateway calls.
var (
	basePrograms = []string{
		"bash", "busybox", "conntrack", "curl", "ip", "iperf3", "ipset", "openssl", "ping", "ss", "tcpdump",
		"wg", "wireguard-go", "xtables-legacy-multi", "xtables-nft-multi",
	}
	busyboxApplets = []string{
		"awk", "cat", "chmod", "cp", "cut", "date", "env", "expr", "false", "find", "grep", "head", "hostname", "id", "kill",
		"ln", "ls", "mkdir", "mount", "mv", "nc", "netstat", "nslookup", "ps", "rm", "sed", "seq", "sh", "sleep", "sort",
		"sysctl", "tail", "timeout", "touch", "tr", "traceroute", "true", "uniq", "vi", "wc", "wget", "xargs",
	}
	iptablesNames = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}
	baseFiles     = []string{"/etc/protocols", "/etc/services", "/etc/ssl/openssl.cnf"}
)

// accounts are the users and groups of a container; 1000 is whom Liqo's chart runs its pods as.
var accounts = map[string]string{ //nolint:gosec // There are no passwords.
	"passwd": "root:x:0:0:root:/root:/bin/bash\napp:x:1000:1000::/tmp:/bin/bash\n",
	"group":  "root:x:0:\napp:x:1000:\n",
}

// libraryFolders are where the loader looks for libraries, as patterns.
var libraryFolders = []string{"/usr/lib/*-linux-gnu*", "/usr/lib64", "/usr/lib"}

// Rootfs is a layer with a small root file system, made of programs of this
// machine and the libraries they load.
func Rootfs() (Layer, error) {
	layer := Layer{
		{Path: "tmp", Mode: 0o777 | fs.ModeSticky}, {Path: "certs", Mode: 0o777}, {Path: "root", Mode: 0o700},
		{Path: "run", Mode: 0o755}, {Path: "usr/bin", Mode: 0o755}, {Path: "usr/sbin", Mode: 0o755},
		{Path: "bin", Link: "usr/bin"}, {Path: "sbin", Link: "usr/sbin"}, {Path: "lib", Link: "usr/lib"}, {Path: "lib64", Link: "usr/lib64"},
		{Path: "var/run", Link: "../run"},
	}
	programs, err := Programs(basePrograms...)
	if err != nil {
		return nil, err
	}
	files, err := rest()
	if err != nil {
		return nil, err
	}
	layer = append(append(layer, programs...), files...)
	for _, name := range iptablesNames {
		kind, suffix, _ := strings.Cut(name, "-")
		if suffix != "" {
			suffix = "-" + suffix
		}
		layer = append(layer,
			Entry{Path: "usr/sbin/" + name, Link: "xtables-nft-multi"},
			Entry{Path: "usr/sbin/" + kind + "-nft" + suffix, Link: "xtables-nft-multi"},
			Entry{Path: "usr/sbin/" + kind + "-legacy" + suffix, Link: "xtables-legacy-multi"})
	}
	for _, applet := range busyboxApplets {
		layer = append(layer, Entry{Path: "usr/bin/" + applet, Link: "busybox"})
	}
	for name, content := range accounts {
		layer = append(layer, Entry{Path: "etc/" + name, Content: content})
	}
	slices.SortStableFunc(layer, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(layer, func(a, b Entry) bool { return a.Path == b.Path && a.Source != "" && a.Source == b.Source }), nil
}

// Programs is a layer with programs of this machine, given by name, where a Rootfs has them, and the libraries that they
// load. A path stands for itself, as of a module that a program loads.
func Programs(names ...string) (Layer, error) {
	var programs []string
	for _, name := range names {
		if filepath.IsAbs(name) {
			programs = append(programs, name)
			continue
		}
		found, err := lookPath(name)
		if err != nil {
			return nil, fmt.Errorf("make root file system: program %s is not installed: %w", name, err)
		}
		programs = append(programs, found)
	}
	return copiesWithLibraries(programs)
}

// rest is what a Rootfs copies besides its programs.
func rest() (Layer, error) {
	plugins, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	if err != nil {
		return nil, fmt.Errorf("find xtables plugins: %w", err)
	}
	// Loaded by name at run time, so that no program says that it needs them.
	resolvers, err := filepath.Glob("/usr/lib/*/libnss_dns.so.2")
	if err != nil {
		return nil, fmt.Errorf("find name service libraries: %w", err)
	}
	loaded, err := copiesWithLibraries(plugins)
	if err != nil {
		return nil, err
	}
	return append(loaded, copies(slices.Concat(resolvers, baseFiles))...), nil
}

// copiesWithLibraries returns a layer with files of this machine, and the libraries that they load.
func copiesWithLibraries(files []string) (Layer, error) {
	var folders []string
	for _, pattern := range libraryFolders {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("find folders of libraries: %w", err)
		}
		folders = append(folders, found...)
	}
	all := slices.Clone(files)
	known := map[string]bool{}
	for i := 0; i < len(all); i++ { // It grows: libraries load libraries.
		needed, err := neededBy(all[i], folders)
		if err != nil {
			return nil, err
		}
		for _, file := range needed {
			if !known[file] {
				known[file] = true
				all = append(all, file)
			}
		}
	}
	return copies(all), nil
}

// neededBy returns the loader and the libraries that a program or library says that it needs. What is no ELF file needs none.
func neededBy(file string, folders []string) ([]string, error) {
	f, err := elf.Open(file)
	var other *elf.FormatError
	if errors.As(err, &other) || errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what %s needs: %w", file, err)
	}
	defer func() { _ = f.Close() }()
	var needed []string
	if section := f.Section(".interp"); section != nil {
		loader, err := section.Data()
		if err != nil {
			return nil, fmt.Errorf("read the loader of %s: %w", file, err)
		}
		needed = append(needed, strings.TrimRight(string(loader), "\x00"))
	}
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("read the libraries of %s: %w", file, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "ld-linux") {
			continue // The program says which loader it is.
		}
		at := slices.IndexFunc(folders, func(folder string) bool {
			_, err := os.Stat(filepath.Join(folder, name))
			return err == nil
		})
		if at < 0 {
			return nil, fmt.Errorf("%s needs library %s, which is in none of %v", file, name, folders)
		}
		needed = append(needed, filepath.Join(folders[at], name))
	}
	return needed, nil
}

// copies returns a layer with files of this machine.
func copies(files []string) Layer {
	var layer Layer
	for _, file := range files {
		// /lib and /usr/lib are one folder on a merged system.
		if rest, ok := strings.CutPrefix(file, "/lib"); ok {
			file = "/usr/lib" + rest
		}
		layer = append(layer, Entry{Path: inRootfs(file), Source: file})
	}
	slices.SortFunc(layer, func(a, b Entry) int { return strings.Compare(a.Source, b.Source) })
	return slices.Compact(layer)
}

// lookPath looks in the folders for administrators as well, which may not be in PATH.
func lookPath(name string) (string, error) {
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"} {
		if file, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return file, nil
		}
	}
	return exec.LookPath(name)
}

// inRootfs keeps libraries where the loader looks and puts programs into the usual folders.
func inRootfs(source string) string {
	switch {
	case source == "/etc/ssl/openssl.cnf":
		return "usr/lib/ssl/openssl.cnf"
	case strings.HasPrefix(source, "/usr/sbin/xtables-"):
		return strings.TrimPrefix(source, "/")
	case slices.Contains([]string{"/usr/sbin", "/bin", "/sbin"}, filepath.Dir(source)):
		return "usr/bin/" + filepath.Base(source)
	}
	return strings.TrimPrefix(source, "/")
}
