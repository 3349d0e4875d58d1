// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWrites reads an audit log whose last line is being written.
func TestWrites(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2024, 5, 1, 12, 0, second, 123456000, time.UTC) }
	line := func(second int, user, verb, uri, more string) string {
		return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete","requestURI":"` + uri +
			`","verb":"` + verb + `","user":{"username":"` + user + `","groups":["system:authenticated"]},` + more +
			`"requestReceivedTimestamp":"` + at(second).Format("2006-01-02T15:04:05.000000Z07:00") + `"}` + "\n"
	}
	const (
		own    = "/apis/brokering.liqo.io/v1alpha1/providers/milan"
		milan  = `"objectRef":{"resource":"providers","name":"milan","apiGroup":"brokering.liqo.io"},"responseStatus":{"code":200},`
		status = `"objectRef":{"resource":"providers","name":"milan","subresource":"status"},"responseStatus":{"code":200},`
		nobody = `"objectRef":{"resource":"consumers","name":"rome"},"responseStatus":{"status":"Failure","code":403},`
		acts   = `"impersonatedUser":{"username":"eve"},`
	)
	log := strings.Join([]string{
		line(1, "ada", "patch", own, milan),
		line(2, "ada", "patch", own+"?dryRun=All&fieldManager=page", milan),
		line(3, "ada", "patch", own, milan),
		line(4, "system:daemon", "patch", own+"/status", status),
		line(5, "admin", "update", "/apis/brokering.liqo.io/v1alpha1/consumers/rome", acts+nobody),
		line(6, "ada", "get", "/healthz", ""),
		strings.TrimSuffix(line(7, "late", "patch", own, milan), "\"}\n"),
	}, "")
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := writesOf(file, at(2))
	if err != nil {
		t.Fatal(err)
	}
	want := []Write{
		{Time: at(2), User: "ada", Verb: "patch", Resource: "providers", Name: "milan", Dry: true, Code: 200},
		{Time: at(3), User: "ada", Verb: "patch", Resource: "providers", Name: "milan", Code: 200},
		{Time: at(5), User: "admin", As: "eve", Verb: "update", Resource: "consumers", Name: "rome", Code: 403},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := writesIn(strings.NewReader("no JSON\n"), at(0)); err == nil {
		t.Error("a line that is none is taken")
	}
}
