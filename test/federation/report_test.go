// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import "testing"

func TestResidentIn(t *testing.T) {
	cases := map[string]struct {
		reason, line string
		want         Resident
		ours         bool
	}{
		"Daemon": {
			reason: "Flags are no command.", line: "  812 51200 /usr/bin/broker --leader-elect --modes=aggregated\n",
			want: Resident{Program: "broker", PID: 812, MiB: 50}, ours: true,
		},
		"Command": {
			reason: "The programs of one image are told apart.", line: " 900 40960 /usr/bin/network-manager agent --leader-elect\n",
			want: Resident{Program: "network-manager agent", PID: 900, MiB: 40}, ours: true,
		},
		"Bare": {
			reason: "A program needs no flags.", line: "7 1024 /usr/bin/broker\n",
			want: Resident{Program: "broker", PID: 7, MiB: 1}, ours: true,
		},
		"RoundsUp": {
			reason: "What is above a goal by a page misses it.", line: "7 65540 /usr/bin/broker\n",
			want: Resident{Program: "broker", PID: 7, MiB: 65}, ours: true,
		},
		"Other": {reason: "Others are none of ours.", line: "1 9999 /usr/bin/containerd\n"},
		"Elsewhere": {
			reason: "A program of this name that is no part of an image is somebody else's.", line: "1 9999 broker\n",
		},
		"Kernel": {reason: "Threads of the kernel have no command line.", line: "2 0\n"},
		"Empty":  {reason: "There may be empty lines.", line: "\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ours := residentIn(tc.line); got != tc.want || ours != tc.ours {
				t.Errorf("%s\nresidentIn(%q) = %+v, %t; want %+v, %t", tc.reason, tc.line, got, ours, tc.want, tc.ours)
			}
		})
	}
}
