// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import "testing"

func TestDocument(t *testing.T) {
	defer func(was string) { version = was }(version)
	for is, want := range map[string]string{
		"v0.1.0": "v0.1.0", "v1.20.3-rc.1": "v1.20.3-rc.1", "unknown": "main",
		"v0.1.0-dirty": "main", "v0.1.0-3-g1a2b3c4": "main", "1a2b3c4": "main",
	} {
		version = is
		if got := Document("docs/kubectl.md"); got != "https://github.com/capacitorset/liqo-broker/blob/"+want+"/docs/kubectl.md" {
			t.Errorf("%s: %s", is, got)
		}
		if got := Applied("deploy/guard"); got != "-k 'https://github.com/capacitorset/liqo-broker//deploy/guard?ref="+want+"'" {
			t.Errorf("%s: %s", is, got)
		}
	}
}
