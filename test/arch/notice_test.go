// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoticeNamesCertificates holds that the notice tells of the certificates that are in the images.
func TestNoticeNamesCertificates(t *testing.T) {
	notice, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(notice), "Mozilla Public License") != strings.Contains(string(text(t, "build/release/go.mod")), "x509roots") {
		t.Error("NOTICE and the images do not agree about the certificates of Mozilla")
	}
}

func text(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
