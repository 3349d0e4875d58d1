// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// local, near and far are the places of both releases.
var (
	local09, near09, far09 = place{"0.9.4", "local"}, place{"0.9.4", "one-hop"}, place{"0.9.4", "two-hops"}
	local12, near12, far12 = place{"1.2.0", "local"}, place{"1.2.0", "one-hop"}, place{"1.2.0", "two-hops"}
)

var passed, failed = spec{passed: true}, spec{}

func TestReport(t *testing.T) {
	found, err := parseReport([]byte(`[{"SpecReports": [
		{"LeafNodeType": "BeforeSuite", "State": "passed"},
		{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "run", "State": "passed"},
		{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "end", "State": "timedout",
		 "Failure": {"Message": "\nno end\nstack"}},
		{"LeafNodeType": "It", "LeafNodeText": "cut off", "State": "timedout", "Failure": {"Message": "A suite timeout occurred"}},
		{"LeafNodeType": "It", "LeafNodeText": "too slow", "State": "timedout", "Failure": {"Message": "A spec timeout occurred"}},
		{"LeafNodeType": "It", "LeafNodeText": "skipped", "State": "skipped"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := specs{"[sig-node] Pods run": passed, "[sig-node] Pods end": {failure: "no end"}, "too slow": {failure: "A spec timeout occurred"}}
	if !maps.Equal(found, want) {
		t.Fatalf("found %v, want %v", found, want)
	}
	if _, err := parseReport([]byte("[{")); err == nil {
		t.Error("half a report is read without an error")
	}
}

func TestSecondLookReplacesTheFirst(t *testing.T) {
	found := specs{"a": passed, "b": failed, "c": failed, "known": failed, "no time": failed}
	found.replace([]string{"b", "c", "no time"}, specs{"b": passed, "c": failed, "stranger": failed})
	if want := (specs{"a": passed, "b": passed, "c": failed, "known": failed}); !maps.Equal(found, want) {
		t.Errorf("after the second look there is %v, want %v", found, want)
	}
}

// TestUnexplained names what behaves worse farther away or with a later Liqo, unless somebody says why.
func TestUnexplained(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		ran    map[place]spec
		known  []place
		want   []string
	}{
		"passes": {
			reason: "There is nothing to explain.", ran: map[place]spec{local09: passed, near09: passed, far09: passed, far12: passed},
		},
		"fails at home": {
			reason: "That has nothing to do with offloading.", ran: map[place]spec{local09: failed, near09: failed, far09: failed, far12: failed},
		},
		"broker": {
			reason: "It passes with one hop.", ran: map[place]spec{local09: failed, near09: passed, far09: failed},
			want: []string{"broker (two-hops, Liqo 0.9.4)"},
		},
		"hops": {
			reason: "It passes at home.", ran: map[place]spec{local09: passed, near09: failed, far09: failed},
			want: []string{"hops (one-hop, Liqo 0.9.4)", "hops (two-hops, Liqo 0.9.4)"},
		},
		"known": {
			reason: "Somebody says why.", ran: map[place]spec{local09: passed, far09: failed}, known: []place{far09},
		},
		"known elsewhere": {
			reason: "What explains one release explains no other one.",
			ran:    map[place]spec{local09: passed, far09: failed, local12: passed, far12: failed},
			known:  []place{far09}, want: []string{"known elsewhere (two-hops, Liqo 1.2.0)"},
		},
		"later alone": {
			reason: "It passes with 0.9.4 there, and nothing else was run with 1.2.0.", ran: map[place]spec{far09: passed, far12: failed},
			want: []string{"later alone (two-hops, Liqo 1.2.0)"},
		},
		"later at home": {
			reason: "It passes with 0.9.4 there.", ran: map[place]spec{local09: passed, local12: failed},
			want: []string{"later at home (local, Liqo 1.2.0)"},
		},
		"later is better": {
			reason: "That it passes with a later one says nothing.", ran: map[place]spec{local09: failed, local12: passed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := results{}
			for at, one := range test.ran {
				all.add(at, specs{name: one})
			}
			why := func(at place, _ string) string {
				if slices.Contains(test.known, at) {
					return "by design"
				}
				return ""
			}
			if got := all.unexplained(why); !slices.Equal(got, test.want) {
				t.Errorf("unexplained are %q, want %q: %s", got, test.want, test.reason)
			}
			err := all.judge(why)
			if (err == nil) != (len(test.want) == 0) || err != nil && !strings.HasSuffix(err.Error(), ":\n  "+strings.Join(test.want, "\n  ")) {
				t.Errorf("judged %v, want %q to be named", err, test.want)
			}
		})
	}
}

// TestExplanation has a reason explain what it is about, and nothing else.
func TestExplanation(t *testing.T) {
	const hook = "[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop http hook properly"
	for _, test := range []struct {
		at          place
		name, wants string
	}{
		{near12, hook, "as it is written"},
		{far12, hook, "as it is written"},
		{far09, hook, "HostNotReachable"},
		{near12, "[sig-node] Pods should allow activeDeadlineSeconds to be updated", "no change of it"},
		{far09, "[sig-node] Pods should allow activeDeadlineSeconds to be updated", ""},
		{near12, "[sig-apps] StatefulSet Should recreate evicted statefulset", "names its node"},
		{far12, "[sig-apps] StatefulSet Should recreate evicted statefulset", "a broker refuses"},
		{near09, "[sig-apps] StatefulSet Should recreate evicted statefulset", ""},
		{far12, "[sig-auth] ServiceAccounts should mount an API token into pods", "API server"},
		{near12, "[sig-auth] ServiceAccounts should mount an API token into pods", ""},
		{near12, "[sig-auth] ServiceAccounts ServiceAccountIssuerDiscovery should support OIDC discovery", "the name in full"},
		{near12, "[sig-network] Services should serve a basic endpoint from pods", "cluster IP"},
		{far12, "[sig-node] Pods should be updated", ""},
	} {
		if got := explanation(test.at, test.name); !strings.Contains(got, test.wants) || (got == "") != (test.wants == "") {
			t.Errorf("%s fails with %v because %q, want %q", test.name, test.at, got, test.wants)
		}
	}
}

// TestSkips has each skip match a test of Kubernetes, and none that it does not name.
func TestSkips(t *testing.T) {
	skipped := regexp.MustCompile(skipped())
	for name, want := range map[string]bool{
		"[sig-apps] Daemon set [Serial] should run and stop simple daemon [Conformance]":                                              true,
		"[sig-node] Node Lifecycle should run through the lifecycle of a node [Conformance]":                                          true,
		"[sig-network] HostPort validates that there is no conflict between pods [Conformance]":                                       true,
		"[sig-node] RuntimeClass should schedule a Pod requesting a RuntimeClass without PodOverhead [NodeConformance]":               true,
		"[sig-storage] EmptyDir wrapper volumes should not cause race condition when used for configmaps [Serial] [Conformance]":      true,
		"[sig-node] RuntimeClass should reject a Pod requesting a deleted RuntimeClass [NodeConformance]":                             false,
		"[sig-network] Networking Granular Checks: Pods should function for intra-pod communication: http [NodeConformance]":          false,
		"[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] Should recreate evicted statefulset [Conformance]": false,
		"[sig-storage] EmptyDir wrapper volumes should not conflict [Conformance]":                                                    false,
		"[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should " +
			"execute prestop http hook properly [NodeConformance]": false,
	} {
		if got := skipped.MatchString(name); got != want {
			t.Errorf("%s is skipped: %t, want %t", name, got, want)
		}
	}
}

func TestExactly(t *testing.T) {
	focus := regexp.MustCompile(exactly([]string{"[sig-node] Pods (a)", "b"}))
	if !focus.MatchString("Kubernetes e2e suite [sig-node] Pods (a)") || focus.MatchString("[sig-node] Pods (a) again") {
		t.Error("the focus matches other tests than those named")
	}
}

// TestRestSkipsWhatIsKnown skips what has a result at the same place, and nothing but what is skipped ever if all is to be run.
func TestRestSkipsWhatIsKnown(t *testing.T) {
	known := results{"near": {near12: true}, "far": {far12: false}, "other": {far09: true}}
	for _, test := range []struct {
		rest  bool
		known results
		want  []string
	}{
		{rest: true, known: known, want: []string{"far"}},
		{rest: false, known: known},
		{rest: true, known: results{}},
	} {
		s := suite{options: options{release: releases[1], rest: test.rest}, distance: distances[2], known: test.known}
		skip := regexp.MustCompile(s.skip())
		var got []string
		for _, name := range []string{"far", "near", "other", "unknown"} {
			if skip.MatchString(name) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("with rest %t and known %v, %v are skipped, want %v", test.rest, test.known, got, test.want)
		}
		if !skip.MatchString("[sig-apps] Daemon set [Serial] should run") {
			t.Error("what is never run is run")
		}
	}
}

// TestChoice has Ginkgo run the tests of workloads, or those of a focus, for as long as there is time.
func TestChoice(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := suite{options: options{release: releases[1]}, distance: distances[2], until: now.Add(30 * time.Minute)}
	for focus, want := range map[string]string{"": groups, "[sig-apps] Job": "[sig-apps] Job"} {
		got := s.choice(focus, now)
		wanted := []string{"--label-filter=Conformance", "--focus=" + want, "--skip=" + skipped(), "--timeout=30m0s"}
		if !slices.Equal(got, wanted) {
			t.Errorf("with focus %q Ginkgo is told %q, want %q", focus, got, wanted)
		}
	}
}

// TestReleaseOfTheLab refuses a lab with another Liqo: what is found there is nothing of the one that was named.
func TestReleaseOfTheLab(t *testing.T) {
	if err := releases[1].runs("v1.2.0"); err != nil {
		t.Error(err)
	}
	want := "the lab that is up has Liqo v0.9.4, and --liqo=1.2 is v1.2.0: bin/lab down removes it"
	if err := releases[1].runs("v0.9.4"); err == nil || err.Error() != want {
		t.Errorf("another Liqo is refused with %v, want %s", err, want)
	}
}

// TestKeep runs a part of the tests again.
func TestKeep(t *testing.T) {
	until := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	before := specs{"a": failed, "gone": failed}
	for name, test := range map[string]struct {
		reason  string
		options options
		now     time.Time
		found   specs
		want    []string
	}{
		"all": {
			reason: "A test that was not found is no more.", now: until.Add(-1), found: specs{"a": passed, "b": passed}, want: []string{"a", "b"},
		},
		"focus": {
			reason: "The others were not looked for.", options: options{focus: "b"}, now: until.Add(-1), found: specs{"b": passed},
			want: []string{"a", "b", "gone"},
		},
		"rest": {
			reason: "What is known was not looked for.", options: options{rest: true}, now: until.Add(-1), found: specs{"b": passed},
			want: []string{"a", "b", "gone"},
		},
		"out of time": {
			reason: "The others may not have begun.", now: until, found: specs{"b": passed}, want: []string{"a", "b", "gone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.release = releases[1]
			s := suite{options: test.options, distance: distances[2], until: until, known: results{}}
			s.known.add(far12, before)
			s.known.add(far09, before)
			s.keep(test.found, test.now)
			if got := s.known.ran(far12); !slices.Equal(got, test.want) {
				t.Errorf("known are %v, want %v: %s", got, test.want, test.reason)
			}
			if got := s.known.ran(far09); !slices.Equal(got, []string{"a", "gone"}) {
				t.Errorf("of another Liqo %v are known, want what was before", got)
			}
			for name, one := range test.found {
				if s.known[name][far12] != one.passed {
					t.Errorf("%s passed: %t, want %t", name, s.known[name][far12], one.passed)
				}
			}
		})
	}
}

func TestForgottenTestsAreGone(t *testing.T) {
	known := results{"a": {far12: true}, "b": {far12: true, far09: false}}
	known.forget(far12)
	if want := (results{"b": {far09: false}}); !reflect.DeepEqual(known, want) {
		t.Errorf("known are %v, want %v", known, want)
	}
}

func TestSkippedByNowDoesNotCount(t *testing.T) {
	known := results{"[sig-apps] Daemon set [Serial] should run": {far09: false}, "[sig-apps] Job should run": {far09: true}}
	known.leaveOut(regexp.MustCompile(skipped()).MatchString)
	if want := (results{"[sig-apps] Job should run": {far09: true}}); !reflect.DeepEqual(known, want) {
		t.Errorf("known are %v, want %v", known, want)
	}
}

func TestParseFlags(t *testing.T) {
	for _, test := range []struct {
		args           []string
		liqo, distance string
		err            string
	}{
		{liqo: "0.9.4", distance: "local one-hop two-hops"},
		{args: []string{"-liqo=1.2", "-distances=two-hops"}, liqo: "1.2.0", distance: "two-hops"},
		{args: []string{"-distances="}, liqo: "0.9.4"},
		{args: []string{"-liqo=1.3"}, err: `--liqo: there is no line "1.3": 0.9 or 1.2`},
		{args: []string{"-distances=local,far"}, err: `--distances: there is no distance "far": local, one-hop or two-hops`},
	} {
		o, err := parse(test.args)
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%v are refused with %v, want %s", test.args, err, test.err)
			}
			continue
		}
		var names []string
		for _, d := range o.distances {
			names = append(names, d.name)
		}
		if got := strings.Join(names, " "); err != nil || o.release.version != test.liqo || got != test.distance {
			t.Errorf("%v mean Liqo %s and %q (%v), want %s and %q", test.args, o.release.version, got, err, test.liqo, test.distance)
		}
	}
}
