// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"
)

// An entry is a file or a folder of an archive.
type entry struct {
	// Path has slashes between its parts, and none before or after.
	Path string
	// Mode has the permissions, fs.ModeDir for a folder and fs.ModeSticky for one such as /tmp.
	Mode fs.FileMode
	Data []byte
}

// ordered returns entries by path, each below folders that are there too. Two entries with one path are an error.
func ordered(entries []entry) ([]entry, error) {
	all := map[string]entry{}
	for _, e := range entries {
		if _, twice := all[e.Path]; twice {
			return nil, fmt.Errorf("%s is there twice", e.Path)
		}
		all[e.Path] = e
	}
	for _, e := range entries {
		for folder := path.Dir(e.Path); folder != "."; folder = path.Dir(folder) {
			if _, there := all[folder]; !there {
				all[folder] = entry{Path: folder, Mode: fs.ModeDir | 0o755}
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b entry) int { return cmp.Compare(a.Path, b.Path) }), nil
}

// tarred returns a tar archive. It depends on the entries and the time alone: not on their order, nor on who makes it, and where.
func tarred(at time.Time, entries []entry) ([]byte, error) {
	sorted, err := ordered(entries)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	out := tar.NewWriter(&buffer)
	for _, e := range sorted {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.Path, Mode: int64(e.Mode.Perm()), Size: int64(len(e.Data)),
			ModTime: at, Format: tar.FormatUSTAR,
		}
		if e.Mode.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, e.Path+"/"
		}
		if e.Mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000 // As Unix has it, which Go's file modes do not.
		}
		if err := out.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("write %s: %w", e.Path, err)
		}
		if _, err := out.Write(e.Data); err != nil {
			return nil, fmt.Errorf("write %s: %w", e.Path, err)
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// tarGz returns a tar archive that is compressed. Neither a name nor a time is in the head of the gzip stream.
func tarGz(at time.Time, entries []entry) ([]byte, error) {
	data, err := tarred(at, entries)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	out, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(data); err != nil {
		return nil, err
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// zipped returns a zip archive of files, under the same conditions as tarred.
func zipped(at time.Time, entries []entry) ([]byte, error) {
	sorted, err := ordered(entries)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	out := zip.NewWriter(&buffer)
	for _, e := range sorted {
		header := &zip.FileHeader{Name: e.Path, Method: zip.Deflate, Modified: at.UTC()}
		if e.Mode.IsDir() {
			header.Name, header.Method = e.Path+"/", zip.Store
		}
		header.SetMode(e.Mode)
		w, err := out.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", e.Path, err)
		}
		if _, err := w.Write(e.Data); err != nil {
			return nil, fmt.Errorf("write %s: %w", e.Path, err)
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// untarred calls do with each file of a tar archive.
func untarred(r io.Reader, do func(header *tar.Header, content io.Reader) error) error {
	for in := tar.NewReader(r); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := do(header, in); err != nil {
			return fmt.Errorf("read %s: %w", header.Name, err)
		}
	}
}
