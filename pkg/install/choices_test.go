// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"
	"testing"
)

// TestKeepDaemon installs again over a daemon that people have changed.
func TestKeepDaemon(t *testing.T) {
	base := []string{"--with-catalog", "--with-aggregator", "--leader-elect", "--pod-security=$(LEVEL)"}
	for name, tc := range map[string]struct {
		reason     string
		live, want []string
		modesGiven bool
		drops      []string
	}{
		"Same": {"what is as in the manifest stays", base, base, false, nil},
		"Gone": {"a flag that the daemon has no more would keep it from starting", append([]string{"--of-old=1", "--of-old-too"}, base...),
			[]string{"--leader-elect", "--pod-security=$(LEVEL)", "--with-catalog", "--with-aggregator"}, false,
			[]string{"--of-old=1", "--of-old-too"}},
		"Modes": {
			"modes that were chosen stay", []string{"--with-orchestrator"},
			[]string{"--leader-elect", "--pod-security=$(LEVEL)", "--with-orchestrator"}, false, nil,
		},
		"Given": {"unless others are given", []string{"--with-orchestrator"}, base, true, nil},
		"Flags": {
			"further flags stay", []string{"--with-catalog", "--prometheus=http://p"},
			[]string{"--leader-elect", "--pod-security=$(LEVEL)", "--with-catalog", "--prometheus=http://p"}, false, nil,
		},
		"Value": {
			"a flag of the manifest has the value of the manifest", []string{"--with-catalog", "--pod-security=privileged"},
			[]string{"--leader-elect", "--pod-security=$(LEVEL)", "--with-catalog"}, false, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, live := pod("broker", slices.Clone(base)...), pod("broker", tc.live...)
			live.Spec.Replicas = new(int32(3))
			if dropped := keepDaemon(want, live, tc.modesGiven, flagsOf(BrokerName)); !slices.Equal(dropped, tc.drops) {
				t.Errorf("%s: dropped are %v, want %v", tc.reason, dropped, tc.drops)
			}
			if args := want.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, tc.want) {
				t.Errorf("%s: the flags are %v, want %v", tc.reason, args, tc.want)
			}
			if *want.Spec.Replicas != 3 {
				t.Errorf("the Deployment has %d replicas, want the 3 that it had", *want.Spec.Replicas)
			}
		})
	}
}
