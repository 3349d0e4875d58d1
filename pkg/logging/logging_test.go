// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestNew(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		err    string
		info   bool
		debug  bool
	}{
		"Default": {reason: "Info is shown, debug is not.", info: true},
		"Debug":   {reason: "V(1) is debug.", args: []string{"--log-level=debug", "--log-format=json"}, info: true, debug: true},
		"Error":   {reason: "Only errors are shown.", args: []string{"--log-level=error"}},
		"Level": {
			reason: "A bad level names the flag.", args: []string{"--log-level=loud"}, err: "--log-level=loud: must be debug, info or error",
		},
		"Format": {reason: "A bad format names the flag.", args: []string{"--log-format=xml"}, err: "--log-format=xml: must be console or json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var o Options
			flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatalf("Parse(): %v", err)
			}
			log, err := New(o)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.err, got); diff != "" {
				t.Errorf("%s\nNew(): -want +got\n%s", tc.reason, diff)
			}
			if log.Enabled() != tc.info || log.V(1).Enabled() != tc.debug {
				t.Errorf("%s\ninfo shown: %v, debug shown: %v", tc.reason, log.Enabled(), log.V(1).Enabled())
			}
		})
	}
}
