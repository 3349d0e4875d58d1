// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestDownSparesOtherFolders(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.tex")
	if err := os.WriteFile(precious, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), dir); err == nil {
		t.Error("Down takes any folder for a lab's")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("Down removed a file that is not a lab's: %v", err)
	}
}

func TestDownRemovesRemains(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	// What an Up leaves that was killed before it had started any node.
	if err := os.MkdirAll(filepath.Join(dir, "clusters", "consumer", "logs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestOpenWithoutLab(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
}

func TestLockExcludesOtherCommands(t *testing.T) {
	f := folder(t.TempDir())
	unlock, err := f.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.lock(); err == nil {
		t.Error("two commands can change one lab at a time")
	}
	unlock()
	again, err := f.lock()
	if err != nil {
		t.Fatalf("lock after unlock: %v", err)
	}
	again()
}
