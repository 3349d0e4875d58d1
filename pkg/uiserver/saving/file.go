// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package saving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Page makes a document that shows data.
type Page interface {
	Document(data []byte) ([]byte, error)
}

// Save writes what data answers now into a file, with pseudonyms in the place of names if they are to be hidden, and returns when that was.
// It ends when ctx ends, if data does. The errors are those of [Read], [Hide] and [Write].
func Save(ctx context.Context, name string, page Page, data http.Handler, hide bool, now func() time.Time) (time.Time, error) {
	m, err := Read(ctx, data, now)
	if err == nil && hide {
		m, err = Hide(m)
	}
	if err != nil {
		return time.Time{}, err
	}
	return m.At, Write(name, page, m)
}

// Write writes the page of a moment into a file, which only its owner may read, all of it or nothing. It takes the place of a file that is
// there, unless that is none of the regular ones.
func Write(name string, page Page, m *Moment) error {
	if err := Check(name); err != nil {
		return err
	}
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write what the page shows: %w", err)
	}
	if len(data) > MaxBytes {
		return ErrTooLarge
	}
	document, err := page.Document(data)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".liqo-broker-*.html") // Only its owner may read it.
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	_, err = file.Write(document)
	if err = errors.Join(err, file.Close(), Check(name)); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the page: %w", err), os.Remove(file.Name()))
	}
	return nil
}

// Check says why no page can be written into a file: something is there that is no regular file, such as a link or a device.
func Check(name string) error {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at where the page is to be: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: nothing is written over it", name)
	}
	return nil
}
