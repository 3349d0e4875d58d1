// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

func TestParseSettings(t *testing.T) {
	two, err := topology.Overlapping().Select(topology.Consumer, topology.Broker)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason   string
		settings []string
		want     map[string][]string
		fails    bool
	}{
		"One": {"values may have colons", []string{"broker:a.b=c:7000"}, map[string][]string{"broker": {"a.b=c:7000"}}, false},
		"Star": {
			"a star is every cluster", []string{"*:a=1", "broker:b=2"}, map[string][]string{"consumer": {"a=1"}, "broker": {"a=1", "b=2"}}, false,
		},
		"NoKey":   {"it sets nothing", []string{"broker:a"}, nil, true},
		"Unknown": {"a typing error must not go unseen", []string{"brokr:a=1"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseSettings(tc.settings, two)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("error %v, settings (-want +got), %s:\n%s", err, tc.reason, diff)
			}
		})
	}
}
