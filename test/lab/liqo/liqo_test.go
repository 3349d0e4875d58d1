// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePeerCommand(t *testing.T) {
	want := []string{"peer", "out-of-band", "a", "--auth-url", "https://172.30.0.3:30000", "--cluster-id", "id", "--auth-token", "t"}
	for name, tc := range map[string]struct {
		reason string
		output string
		want   []string
	}{
		"Bare": {"as liqoctl prints it", "liqoctl peer out-of-band a --auth-url https://172.30.0.3:30000 --cluster-id id --auth-token t\n", want},
		"Path": {
			"liqoctl repeats the name that it was started with",
			"\n/some where\n/opt/liqoctl peer out-of-band a --auth-url https://172.30.0.3:30000 --cluster-id id --auth-token t\n", want,
		},
		"None": {"nothing to run", "liqoctl version\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parsePeerCommand(tc.output)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.want != nil) {
				t.Errorf("error %v, arguments (-want +got), %s:\n%s", err, tc.reason, diff)
			}
		})
	}
}
