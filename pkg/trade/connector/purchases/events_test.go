// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
)

// TestEvents holds that people are told once of each step of a purchase, and warned of what is not as it should be.
func TestEvents(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	events := record.NewFakeRecorder(100)
	w.events = events
	w.restart()
	speak := s.silence()
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonSellerUnreachable, nil)
	speak()
	w.until("p", connectorv1alpha1.ReasonActive, s)
	for range 3 { // Nothing is new.
		w.once("p")
	}
	w.end("p")
	w.until("p", connectorv1alpha1.ReasonEnded, s)
	close(events.Events)
	var got []string
	for event := range events.Events {
		words := strings.Fields(event)
		if len(words) < 3 {
			t.Errorf("the event says nothing: %q", event)
		}
		got = append(got, words[0]+" "+words[1])
	}
	want := []string{"Warning SellerUnreachable", "Normal Negotiating", "Normal SettingUp", "Normal Active", "Normal Ending", "Normal Ended"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestTransitions holds that the log has each state of a contract once, when it is written.
func TestTransitions(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	var got []string
	ctx := log.IntoContext(t.Context(), funcr.NewJSON(func(line string) {
		if _, rest, is := strings.Cut(line, `"msg":"Contract",`); is {
			if !strings.Contains(rest, `"id":"uid-p"`) {
				t.Errorf("which contract? %s", line)
			}
			_, rest, _ = strings.Cut(rest, `"from":`)
			step, _, _ := strings.Cut(rest, `,"why"`)
			got = append(got, step)
		}
	}, funcr.Options{}))
	for range 20 {
		w.wait(pause)
		if _, err := w.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		s.serve(t, w.key("p"))
	}
	want := []string{`"","to":"Reserved"`, `"Reserved","to":"Signed"`, `"Signed","to":"Provisioning"`, `"Provisioning","to":"Active"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
