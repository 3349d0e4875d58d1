// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	found, err := parseReport([]byte(`[{"SpecReports": [
		{"LeafNodeType": "BeforeSuite", "State": "passed"},
		{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "run", "State": "passed", "RunTime": 1260000000},
		{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "end", "State": "timedout",
		 "Failure": {"Message": "\nno end\nstack"}},
		{"LeafNodeType": "It", "LeafNodeText": "skipped", "State": "skipped"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := specs{"[sig-node] Pods run": {Passed: true, Seconds: 1.2}, "[sig-node] Pods end": {Failure: "no end"}}
	if !maps.Equal(found, want) {
		t.Fatalf("found %v, want %v", found, want)
	}
	path := filepath.Join(t.TempDir(), "results.json")
	if err := found.write(path); err != nil {
		t.Fatal(err)
	}
	if read, err := readResults(path); err != nil || !maps.Equal(read, want) {
		t.Errorf("read %v (%v), want %v", read, err, want)
	}
	if _, err := parseReport([]byte("[{")); err == nil {
		t.Error("half a report is read without an error")
	}
}

func TestSecondLookReplacesTheFirst(t *testing.T) {
	first := specs{"a": {Passed: true}, "b": {}, "c": {}}
	first.replace(specs{"b": {Passed: true}, "c": {}, "stranger": {}})
	if got := first.failed(); !slices.Equal(got, []string{"c"}) || len(first) != 3 {
		t.Errorf("failed %v of %d, want c of 3", got, len(first))
	}
}

// TestJudge fails what behaves worse through the broker, unless somebody says why.
func TestJudge(t *testing.T) {
	why := func(name string) string { return map[string]string{"known": "by design"}[name] }
	passed, failed := spec{Passed: true}, spec{}
	all := results{}
	all.add("local", specs{"near": passed, "both": passed, "known": passed, "broker": passed, "everywhere": failed, "hops": passed})
	all.add("one-hop", specs{"both": passed, "known": passed, "broker": passed, "everywhere": failed, "hops": failed})
	all.add("two-hops", specs{"both": passed, "known": failed, "broker": failed, "everywhere": failed, "hops": failed})
	err := all.judge(why)
	if err == nil || !strings.HasSuffix(err.Error(), ":\n  broker\n  hops") {
		t.Errorf("judged %v, want broker and hops to be named", err)
	}
	page := all.page(why)
	for _, want := range []string{
		"| two-hops | 1 | 4 |", "| known | passes | passes | **fails** | by design |", "| hops | passes | **fails** | **fails** |  |",
		"\n* both\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
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

// TestFocusKeepsOtherResults runs a part of the tests again.
func TestFocusKeepsOtherResults(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "local.json")
	for _, run := range []struct {
		focus       string
		found, want specs
	}{
		{"a", specs{"a": {}}, specs{"a": {}}},
		{"", specs{"a": {}, "b": {}}, specs{"a": {}, "b": {}}},
		{"b", specs{"b": {Passed: true}}, specs{"a": {}, "b": {Passed: true}}},
		{"", specs{"c": {}}, specs{"c": {}}},
	} {
		s := suite{options: options{results: dir, focus: run.focus}, distance: distances[0]}
		if err := s.keep(run.found); err != nil {
			t.Fatal(err)
		}
		if got, err := readResults(path); err != nil || !maps.Equal(got, run.want) {
			t.Errorf("after focus %q the results are %v (%v), want %v", run.focus, got, err, run.want)
		}
	}
}

func TestSkippedByNowDoesNotCount(t *testing.T) {
	found := specs{"[sig-apps] Daemon set [Serial] should run": {}, "[sig-apps] Job should run": {Passed: true}}
	left := found.without(regexp.MustCompile(skipped()))
	if want := (specs{"[sig-apps] Job should run": {Passed: true}}); !maps.Equal(left, want) {
		t.Errorf("got %v, want %v", left, want)
	}
}
