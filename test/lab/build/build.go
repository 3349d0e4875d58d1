// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build makes what a lab runs: the binaries of Kubernetes, Liqo and
// CoreDNS, and the images. All comes from source code in Go modules and from
// programs of this machine, and is kept in a cache. It does not run any of it.
package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/capacitorset/liqo-broker/test/lab/cache"
)

// Builder builds from a source tree of this project.
type Builder struct {
	// Source is the folder of the project's go.mod.
	Source string
	Cache  cache.Dir
	// Log is the file that receives the output of the builds.
	Log string
	// Started is called when something has to be built because the cache lacks it.
	Started func(what string)
}

// target is one folder of binaries.
type target struct {
	name string
	// dir is the folder of the module, below the source tree.
	dir string
	// packages are built into one binary each, named like the last element.
	packages []string
	ldflags  string
	// inputs are the files, below dir, that decide what is built.
	inputs []string
	// source makes the folder that is built in, below a scratch folder that goes after the build. If it is nil, dir is built in.
	source func(ctx context.Context, scratch string) (string, error)
	// finish adds what else belongs into the folder.
	finish func(ctx context.Context, dir string) error
}

// binaries returns the folder with the target's binaries.
func (b Builder) binaries(ctx context.Context, t target) (string, error) {
	module := filepath.Join(b.Source, t.dir)
	var paths []string
	for _, input := range t.inputs {
		paths = append(paths, filepath.Join(module, input))
	}
	inputs, err := cache.Files(paths...)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", t.name, err)
	}
	version, err := b.output(ctx, module, "go", "env", "GOVERSION", "GOARCH")
	if err != nil {
		return "", fmt.Errorf("build %s: %w", t.name, err)
	}
	arguments := strings.Join(append(slices.Clone(t.packages), t.ldflags), " ")
	key := cache.Key(t.name, append(inputs, []byte(version), []byte(arguments))...)
	return b.Cache.Get(ctx, key, func(ctx context.Context, dir string) error {
		b.Started(t.name)
		folder, scratch := module, filepath.Join(dir, "source")
		if t.source != nil {
			if folder, err = t.source(ctx, scratch); err != nil {
				return fmt.Errorf("copy the source of %s: %w (see %s)", t.name, err, b.Log)
			}
		}
		// Two compilers at a time are what a small machine has memory for.
		args := []string{"build", "-p", "2", "-trimpath", "-buildvcs=false", "-ldflags", t.ldflags, "-o", dir + "/"}
		if err := b.run(ctx, folder, "go", append(args, t.packages...)...); err != nil {
			return fmt.Errorf("build %s: %w (see %s)", t.name, err, b.Log)
		}
		if err := os.RemoveAll(scratch); err != nil {
			return fmt.Errorf("remove the source of %s: %w", t.name, err)
		}
		if t.finish == nil {
			return nil
		}
		if err := t.finish(ctx, dir); err != nil {
			return fmt.Errorf("build %s: %w", t.name, err)
		}
		return nil
	})
}

func (b Builder) run(ctx context.Context, dir, name string, args ...string) error {
	log, err := os.OpenFile(b.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := b.command(ctx, dir, name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}

func (b Builder) output(ctx context.Context, dir, name string, args ...string) (string, error) {
	out, err := b.command(ctx, dir, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (b Builder) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd
}

// FindSource finds the source tree around this program, or around the current folder.
func FindSource() (string, error) {
	var starts []string
	if self, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(self))
	}
	if here, err := os.Getwd(); err == nil {
		starts = append(starts, here)
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err == nil && strings.HasPrefix(string(data), "module github.com/capacitorset/liqo-broker\n") {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("find the source tree of liqo-broker: it is neither around this program nor around the current folder")
}
