// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// A Patch is one file of the patches folder.
type Patch struct {
	Path    string // Absolute.
	Module  string // Path of the module that it changes.
	Version string // Version that it was written for.
}

// moduleLine is the line in the head of a patch that names the module.
var moduleLine = regexp.MustCompile(`(?m)^Module: (\S+) (v\S+)$`)

// ReadPatches returns the patches of a folder, sorted by name.
func ReadPatches(folder string) ([]Patch, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	patches := make([]Patch, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		match := moduleLine.FindSubmatch(text)
		if match == nil {
			return nil, fmt.Errorf("%s has no line of the form `Module: PATH VERSION`", path)
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		patches = append(patches, Patch{Path: absolute, Module: string(match[1]), Version: string(match[2])})
	}
	return patches, nil
}

// Build writes a patched copy of each patched module to out, below its path. Folders are relative to root, the folder of the main module,
// but for an out that is absolute. When it fails, out does not exist.
func Build(ctx context.Context, root, patchFolder, out string) error {
	target := out
	if !filepath.IsAbs(out) {
		target = filepath.Join(root, out)
	}
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	patches, err := ReadPatches(filepath.Join(root, patchFolder))
	if err != nil {
		return err
	}
	for _, patch := range patches {
		if err = place(ctx, root, patch, filepath.Join(target, filepath.FromSlash(patch.Module))); err != nil {
			return errors.Join(err, os.RemoveAll(target))
		}
	}
	return nil
}

// place applies a patch to the copy of its module, which it makes for the first of them.
func place(ctx context.Context, root string, patch Patch, folder string) error {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		if err := copyModule(ctx, root, patch, folder); err != nil {
			return err
		}
	}
	return apply(ctx, patch, folder)
}

// copyModule copies the module that a patch is for out of the module cache. It refuses another version than the patch's.
func copyModule(ctx context.Context, root string, patch Patch, target string) error {
	list := exec.CommandContext(ctx, "go", "mod", "download", "-json", patch.Module)
	list.Dir = root
	output, err := list.Output()
	if err != nil {
		return fmt.Errorf("download %s: %w", patch.Module, withStderr(err))
	}
	var module struct {
		Version string `json:"Version"`
		Dir     string `json:"Dir"`
	}
	if err := json.Unmarshal(output, &module); err != nil {
		return fmt.Errorf("read the answer of go mod download for %s: %w", patch.Module, err)
	}
	if module.Version != patch.Version {
		return fmt.Errorf("%s is for %s %s, and go.mod has %s: check whether it is still needed, and how it must look",
			patch.Path, patch.Module, patch.Version, module.Version)
	}
	// Files of the module cache are read-only; those that CopyFS writes are not.
	if err := os.CopyFS(target, os.DirFS(module.Dir)); err != nil {
		return fmt.Errorf("copy %s: %w", patch.Module, err)
	}
	return nil
}

// apply applies a patch to a copy of its module.
func apply(ctx context.Context, patch Patch, folder string) error {
	git := exec.CommandContext(ctx, "git", "apply", patch.Path)
	git.Dir = folder
	// Below a git work tree, git apply would silently skip files outside of the current folder.
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+parent(folder))
	if _, err := git.Output(); err != nil {
		return fmt.Errorf("apply %s to %s %s: %w", patch.Path, patch.Module, patch.Version, withStderr(err))
	}
	return nil
}

// parent returns the absolute parent of a folder, which is how git wants its ceiling.
func parent(folder string) string {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return filepath.Dir(folder)
	}
	return filepath.Dir(absolute)
}

// withStderr adds what a command wrote to its standard error.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
