// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	admissiontest "github.com/capacitorset/liqo-broker/test/admission"
)

const daemon = "system:serviceaccount:liqo-broker:liqo-broker"

// asks sends a review over HTTP as an API server does, and returns the answer, which always admits.
func asks(t *testing.T, h *Handler, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	request.UID = "1"
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	(&admission.Webhook{Handler: h}).ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	if w.Code != http.StatusOK || !review.Response.Allowed || len(review.Response.Patch) > 0 {
		t.Fatalf("%d: %+v", w.Code, review.Response)
	}
	return review.Response
}

// written returns an object with some metadata and a spec, as JSON.
func written(metadata, spec string) runtime.RawExtension {
	return runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"p","uid":"u","generation":1` + metadata + `},"spec":` + spec +
		`,"status":{"clusterName":"x"}}`)}
}

func TestHandle(t *testing.T) {
	const (
		here, active, drained = `,"labels":{}`, `{"scheduling":"Active"}`, `{"scheduling":"Drained"}`
		cordoned, later       = `{"scheduling":"Cordoned"}`, `{"scheduling":"Drained","later":1}`
		warning               = "preview of p: Drained"
		update                = admissionv1.Update
	)
	hostile := `{"scheduling":"` + strings.Repeat(`\u202e`, 100_000) + `"}`
	cases := map[string]struct {
		reason        string
		operation     admissionv1.Operation
		user          string // Alice, if empty.
		kind          string // Provider, if empty.
		subresource   string
		before, after runtime.RawExtension
		dryRun        bool
		preview       string // What the preview does instead of saying something.
		want          string // What is told; nothing, if empty.
		warning       string
	}{
		"Drained": {
			reason: "Who drains a provider is told of, and what it means.", operation: update, before: written(here, active),
			after: written(here, drained), want: "alice changed spec.scheduling: Active → Drained", warning: warning,
		},
		"DryRun": {
			reason: "Who only tries is told what it means, and nothing is written.", operation: update, before: written(here, active),
			after: written(here, drained), dryRun: true, warning: warning,
		},
		"Cordoned": {
			reason: "So is who cordons one.", operation: update, before: written(here, active), after: written(here, cordoned),
			want: "alice changed spec.scheduling: Active → Cordoned", warning: "preview of p: Cordoned",
		},
		"Again": {
			reason: "What changes else of one that is drained is no reason to warn again.", operation: update, before: written(here, drained),
			after: written(here, later), want: "alice changed spec.later: none → 1",
		},
		"Active": {
			reason: "One that is opened closes nothing.", operation: update, before: written(here, drained), after: written(here, active),
			want: "alice changed spec.scheduling: Drained → Active",
		},
		"Status": {
			reason: "A status is nobody's decision.", operation: update, before: written(here, active), after: written(`,"x":1`, active),
		},
		"Subresource": {
			reason: "Nor is it by its own way.", operation: update, subresource: "status", before: written(here, active),
			after: written(here, drained),
		},
		"Daemon": {
			reason: "What the daemon changes is told otherwise.", operation: update, user: daemon, before: written(here, active),
			after: written(here, drained),
		},
		"GitOps": {
			reason: "Controllers are people's, and have names.", operation: update, user: "system:serviceaccount:argocd:controller",
			before: written(here, active), after: written(here, drained), warning: warning,
			want: "system:serviceaccount:argocd:controller changed spec.scheduling: Active → Drained",
		},
		"Namesake": {
			reason: "Who is called nearly like the daemon is not.", operation: update, user: daemon + "x", before: written(here, active),
			after: written(here, drained), want: daemon + "x changed spec.scheduling: Active → Drained", warning: warning,
		},
		"Created": {
			reason: "Who creates something is told of.", operation: admissionv1.Create, after: written(here, active),
			want: "alice created it with spec.scheduling: Active",
		},
		"Deleted": {
			reason: "And who deletes it.", operation: admissionv1.Delete, before: written(here, active), want: "alice deleted it",
		},
		"DeletedAgain": {
			reason: "What is being deleted was deleted before.", operation: admissionv1.Delete,
			before: written(`,"deletionTimestamp":"2026-01-02T03:04:05Z"`, active),
		},
		"Consumer": {
			reason: "Of other kinds there is no preview.", operation: update, kind: "Consumer", before: written(here, active),
			after: written(here, drained), want: "alice changed spec.scheduling: Active → Drained",
		},
		"Hostile": {
			reason: "Whatever is written, it is short.", operation: update, user: "a\u202eb\n" + strings.Repeat("x", 100_000),
			before: written(here, active), after: written(here, hostile), warning: "preview of p: Cordoned",
			want: `"a?b ` + strings.Repeat("x", maxUser-len("a?b ...")) + `..." changed spec: 23 bytes → 600017 bytes`,
		},
		"Broken": {
			reason: "What cannot be read hinders nobody.", operation: update, before: written(here, active),
			after: runtime.RawExtension{Raw: []byte(`{"metadata":1}`)},
		},
		"Fails": {
			reason: "Nor does a preview that fails.", operation: update, before: written(here, active), after: written(here, drained),
			preview: "fails", want: "alice changed spec.scheduling: Active → Drained",
		},
		"Panics": {
			reason: "Nor one that panics.", operation: update, before: written(here, active), after: written(here, drained), preview: "panics",
			want: "alice changed spec.scheduling: Active → Drained",
		},
		"Long": {
			reason: "A warning is short and plain.", operation: update, before: written(here, active), after: written(here, drained),
			preview: "long", want: "alice changed spec.scheduling: Active → Drained", warning: "?" + strings.Repeat("x", maxWarning-4) + "...",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			to := &sink{}
			var warnings []string
			running(t, to, func(t *testing.T, l *Log) {
				t.Helper()
				h := New(l, daemon, Closing(func(_ context.Context, p *v1alpha1.Provider) (string, error) {
					switch tc.preview {
					case "fails":
						return "not said", errors.New("boom")
					case "panics":
						panic("boom")
					case "long":
						return "\u202e" + strings.Repeat("x", 100_000), nil
					}
					return "preview of " + p.Name + ": " + string(p.EffectiveScheduling()), nil
				}))
				request := &admissionv1.AdmissionRequest{
					Kind:      metav1.GroupVersionKind{Group: v1alpha1.Group, Version: "v1alpha1", Kind: "Provider"},
					Operation: tc.operation, SubResource: tc.subresource, OldObject: tc.before, Object: tc.after,
					UserInfo: authenticationv1.UserInfo{Username: "alice"},
				}
				if tc.user != "" {
					request.UserInfo.Username = tc.user
				}
				if tc.kind != "" {
					request.Kind.Kind = tc.kind
				}
				if tc.dryRun {
					request.DryRun = &tc.dryRun
				}
				warnings = asks(t, h, request).Warnings
			})
			var want, wantWarnings []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			if tc.warning != "" {
				wantWarnings = []string{tc.warning}
			}
			if diff := gocmp.Diff(want, to.messages()); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if diff := gocmp.Diff(wantWarnings, warnings); diff != "" {
				t.Errorf("%s\nwarnings: -want +got\n%s", tc.reason, diff)
			}
			for i := range to.events {
				o := to.events[i].InvolvedObject
				if o.APIVersion != "brokering.liqo.io/v1alpha1" || o.Name != "p" || o.UID != "u" || o.Kind == "" {
					t.Errorf("%s\nabout %+v", tc.reason, o)
				}
			}
		})
	}
}

// TestRetries holds that what the API server asks about twice, first with an old object, is told once, and that what somebody does twice is
// told twice.
func TestRetries(t *testing.T) {
	type step struct {
		after      time.Duration // Since the step before.
		user       string        // Alice, if empty.
		uid        string        // That of the object; u, if empty.
		generation int
		was, is    string // Specs; it is deleted if the second is empty.
	}
	const (
		none, suspended, moved, both = `{}`, `{"suspended":true}`, `{"moved":true}`, `{"moved":true,"suspended":true}`
		suspends, deletes            = "alice changed spec.suspended: none → true", "alice deleted it"
	)
	long := func(letter string) string { return `{"text":"` + strings.Repeat(letter, maxText+1) + `"}` }
	cases := map[string]struct {
		reason string
		steps  []step
		want   []string
	}{
		"DeleteOld": {
			reason: "An object is deleted once.", steps: []step{{generation: 1, was: none}, {generation: 4, was: moved}}, want: []string{deletes},
		},
		"DeleteAnother": {
			reason: "One that is called the same is another one.", steps: []step{{generation: 1, was: none}, {generation: 1, was: none, uid: "v"}},
			want: []string{deletes, deletes},
		},
		"DeleteLater": {
			reason: "What was refused is tried again, and no request takes so long.",
			steps:  []step{{generation: 1, was: none}, {after: maxRetry, generation: 2, was: moved}}, want: []string{deletes, deletes},
		},
		"DeleteBoth": {
			reason: "Each who tries is told of.", steps: []step{{generation: 1, was: none}, {generation: 1, was: none, user: "bob"}},
			want: []string{deletes, "bob deleted it"},
		},
		"ChangeOld": {
			reason: "What another one has changed meanwhile is no reason to tell it again, also a second time.",
			steps: []step{
				{generation: 1, was: none, is: suspended}, {generation: 2, was: moved, is: both}, {generation: 3, was: moved, is: both},
			},
			want: []string{suspends},
		},
		"ChangeTwice": {
			reason: "What was undone by another one, and is done again, is told.",
			steps: []step{
				{generation: 1, was: none, is: suspended}, {generation: 2, was: suspended, is: none, user: "bob"},
				{generation: 3, was: none, is: suspended},
			},
			want: []string{suspends, "bob changed spec.suspended: true → none", suspends},
		},
		"ChangeAlike": {
			reason: "Two changes one upon the other are two, also if they read the same.",
			steps:  []step{{generation: 1, was: long("a"), is: long("b")}, {generation: 2, was: long("b"), is: long("c")}},
			want:   slices.Repeat([]string{"alice changed spec.text: a text of 65 characters → a text of 65 characters"}, 2),
		},
		"ChangeLater": {
			reason: "No request takes so long.",
			steps:  []step{{generation: 1, was: none, is: suspended}, {after: maxRetry, generation: 2, was: moved, is: both}},
			want:   []string{suspends, suspends},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			to := &sink{}
			running(t, to, func(t *testing.T, l *Log) {
				t.Helper()
				h := New(l, daemon, nil)
				for _, s := range tc.steps {
					time.Sleep(s.after)
					object := func(spec string) runtime.RawExtension {
						return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"metadata":{"name":"p","uid":%q,"generation":%d},"spec":%s}`,
							cmp.Or(s.uid, "u"), s.generation, spec)}
					}
					request := &admissionv1.AdmissionRequest{
						Kind:      metav1.GroupVersionKind{Group: v1alpha1.Group, Version: "v1alpha1", Kind: "Provider"},
						Operation: admissionv1.Delete, OldObject: object(s.was),
						UserInfo: authenticationv1.UserInfo{Username: cmp.Or(s.user, "alice")},
					}
					if s.is != "" {
						request.Operation, request.Object = admissionv1.Update, object(s.is)
					}
					asks(t, h, request)
					synctest.Wait()
				}
			})
			if diff := gocmp.Diff(tc.want, to.messages()); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConfiguration looks at what the API server asks the daemon, and the guard of what is traded: about the kinds in which people decide,
// in a way that hinders nobody.
func TestConfiguration(t *testing.T) {
	for name, tc := range map[string]struct{ folder, kinds, own string }{
		"Daemon": {"broker", "crds", daemon},
		"Guard":  {"guard", "connector/crds", "system:serviceaccount:liqo-broker-connector:liqo-broker-connector"},
	} {
		t.Run(name, func(t *testing.T) {
			all := admissiontest.Webhooks(t, "../../../deploy/"+tc.folder+"/webhook.yaml")
			i := slices.IndexFunc(all, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == "audit" })
			if i < 0 {
				t.Fatalf("deploy/%s/webhook.yaml has no webhook audit", tc.folder)
			}
			w := all[i]
			if *w.ClientConfig.Service.Path != Path || *w.FailurePolicy != admissionregistrationv1.Ignore || *w.TimeoutSeconds > 2 ||
				*w.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun ||
				*w.MatchPolicy != admissionregistrationv1.Equivalent {
				t.Errorf("%+v", w)
			}
			if limit := time.Duration(*w.TimeoutSeconds) * time.Second; foresightTimeout > previewTimeout/2 || previewTimeout > limit/2 {
				t.Errorf("the API server waits for %s, a warning may take %s, and to foresee a drain %s", limit, previewTimeout, foresightTimeout)
			}
			people := withSpec(t, "../../../deploy/"+tc.kinds)
			if got := askedAbout(t, w.Rules); !slices.Equal(got, people) {
				t.Errorf("asked about %v, and people write the spec of %v", got, people)
			}
			asked := func(user string, operation admissionv1.Operation, before, after any) bool {
				given := map[string]any{
					"request": map[string]any{"operation": string(operation), "userInfo": map[string]any{"username": user}},
					"object":  after, "oldObject": before,
				}
				return !slices.ContainsFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
					return !admissiontest.Holds(t, c.Expression, given)
				})
			}
			// The API server does not ask about the program that writes them itself.
			was, is := map[string]any{"spec": map[string]any{"a": 1}}, map[string]any{"spec": map[string]any{"a": 2}}
			for user, want := range map[string]bool{tc.own: false, "alice": true, tc.own + "x": true} {
				if got := asked(user, admissionv1.Update, was, is); got != want {
					t.Errorf("asked about %s: %t, want %t", user, got, want)
				}
			}
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Delete} {
				if !asked("alice", operation, was, was) {
					t.Errorf("not asked about %s", operation)
				}
			}
		})
	}
}

// askedAbout returns the resources about all of whose changes is asked, and not about what becomes of them.
func askedAbout(t *testing.T, rules []admissionregistrationv1.RuleWithOperations) []string {
	t.Helper()
	asked := map[string]bool{}
	for _, rule := range rules {
		if len(rule.Operations) != 3 || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) {
			t.Errorf("asked about %v", rule.Operations)
		}
		for _, resource := range rule.Resources {
			asked[resource] = true
		}
	}
	return slices.Sorted(maps.Keys(asked))
}

// withSpec returns the plurals of the kinds in a folder that have a spec: people write it.
func withSpec(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*_*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var people []string
	for _, file := range files {
		definition, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plural := regexp.MustCompile(`(?m)^    plural: (\w+)$`).FindSubmatch(definition)
		if bytes.Contains(definition, []byte("\n          spec:\n")) {
			people = append(people, string(plural[1]))
		}
	}
	return slices.Sorted(slices.Values(people))
}
