// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Pages returns the text of all pages of a repository by their paths in it, without those of hidden folders, of tests' data and of what a
// build has made.
func Pages(repository string) (map[string]string, error) {
	texts := map[string]string{}
	err := fs.WalkDir(os.DirFS(repository), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != "." || entry.Name() == "testdata" || path == "bin" ||
			path == "dist"):
			return fs.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(filepath.Join(repository, path))
		texts[path] = string(text)
		return err
	})
	return texts, err
}
