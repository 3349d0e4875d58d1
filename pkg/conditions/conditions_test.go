// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/capacitorset/liqo-broker/pkg/conditions"
)

func ready(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message}
}

func TestSet(t *testing.T) {
	var all []metav1.Condition
	conditions.Set(&all, 3, ready(metav1.ConditionTrue, "Good", strings.Repeat("m", 2000)))
	if got := all[0]; len(got.Message) != 1024 || got.ObservedGeneration != 3 || got.LastTransitionTime.IsZero() {
		t.Errorf("message of %d bytes, generation %d, changed at %s; want 1024, 3, now", len(got.Message), got.ObservedGeneration,
			got.LastTransitionTime)
	}
}

// TestTell has each change of a status or a reason told once, and nothing else.
func TestTell(t *testing.T) {
	is := ready(metav1.ConditionTrue, "Good", "It is good.")
	for _, tc := range []struct {
		reason string
		before []metav1.Condition
		want   []string
	}{
		{"What was not there is told.", nil, []string{"Normal Good It is good."}},
		{"Another reason is told.", []metav1.Condition{ready(metav1.ConditionTrue, "Better", "")}, []string{"Normal Good It is good."}},
		{"Another status is told.", []metav1.Condition{ready(metav1.ConditionFalse, "Good", "")}, []string{"Normal Good It is good."}},
		{"Another message is not.", []metav1.Condition{ready(metav1.ConditionTrue, "Good", "It was good.")}, nil},
	} {
		events, lines := record.NewFakeRecorder(9), 0
		ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) {
			if lines++; !strings.Contains(line, `"of"="p" "condition"="Ready"`) {
				t.Errorf("%s\nthe log says %s", tc.reason, line)
			}
		}, funcr.Options{}))
		recorder := conditions.Recorder{Events: events, Kind: func(conditions.Change) string { return corev1.EventTypeNormal }}
		recorder.Tell(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, tc.before, []metav1.Condition{is})
		close(events.Events)
		var got []string
		for event := range events.Events {
			got = append(got, event)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || lines != len(tc.want) {
			t.Errorf("%s\n%d lines of the log, events -want +got\n%s", tc.reason, lines, diff)
		}
	}
}

// TestTellNobody has a change that is worth no event, and nobody who writes events: the log has it.
func TestTellNobody(t *testing.T) {
	lines := 0
	ctx := log.IntoContext(t.Context(), funcr.New(func(string, string) { lines++ }, funcr.Options{}))
	events, none := record.NewFakeRecorder(9), func(conditions.Change) string { return "" }
	changed := []metav1.Condition{ready(metav1.ConditionTrue, "Good", "")}
	conditions.Recorder{Events: events, Kind: none}.Tell(ctx, &corev1.Pod{}, nil, changed)
	conditions.Recorder{Kind: func(conditions.Change) string { return corev1.EventTypeNormal }}.Tell(ctx, &corev1.Pod{}, nil, changed)
	if lines != 2 || len(events.Events) > 0 {
		t.Errorf("%d lines of the log and %d events, want 2 and none", lines, len(events.Events))
	}
}
