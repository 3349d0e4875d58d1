// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps folders that are costly to make under a key of everything
// that went into them. It does not know what is in the folders.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Dir is a folder of cached folders. Several processes may use it at a time.
type Dir struct{ path string }

// User returns the cache of the current user.
func User() (Dir, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return Dir{}, fmt.Errorf("find the user's cache: %w", err)
	}
	return At(filepath.Join(base, "liqo-broker", "lab")), nil
}

// At returns the cache in the given folder, which need not exist.
func At(path string) Dir { return Dir{path: path} }

// Path is the folder of the cache.
func (d Dir) Path() string { return d.path }

// Get returns the folder of the key. If there is none, fill makes its contents in
// an empty folder that takes its place when fill succeeds, so that whatever is
// killed at whatever time, a folder in the cache is complete. Of several callers
// that miss the same key one fills and the others wait.
func (d Dir) Get(ctx context.Context, key string, fill func(ctx context.Context, dir string) error) (string, error) {
	final := filepath.Join(d.path, key)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	unlock, err := d.lock(key)
	if err != nil {
		return "", fmt.Errorf("lock cache entry %s: %w", key, err)
	}
	defer unlock()
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	temp := final + ".part"
	if err := os.RemoveAll(temp); err != nil {
		return "", fmt.Errorf("make cache entry %s: %w", key, err)
	}
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return "", fmt.Errorf("make cache entry %s: %w", key, err)
	}
	if err := fill(ctx, temp); err != nil {
		return "", err
	}
	if err := os.Rename(temp, final); err != nil {
		return "", fmt.Errorf("make cache entry %s: %w", key, err)
	}
	return final, nil
}

// lock holds an advisory lock that the kernel drops when the process ends.
func (d Dir) lock(key string) (func(), error) {
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(d.path, key+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	number := int(f.Fd()) //nolint:gosec // The kernel's file numbers fit.
	if err := unix.Flock(number, unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// Key is the name of a cache entry: a word for people and a hash of the inputs.
func Key(name string, inputs ...[]byte) string {
	h := sha256.New()
	for _, in := range inputs {
		fmt.Fprintf(h, "%d\n", len(in))
		h.Write(in)
	}
	return name + "-" + hex.EncodeToString(h.Sum(nil))[:16]
}

// Files reads files as inputs of a Key.
func Files(paths ...string) ([][]byte, error) {
	var inputs [][]byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read cache input: %w", err)
		}
		inputs = append(inputs, data)
	}
	return inputs, nil
}
