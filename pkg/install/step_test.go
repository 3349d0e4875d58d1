// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capacitorset/liqo-broker/pkg/await"
)

// world is what a step changes: it is to be as wanted, and settles a while later.
type world struct {
	is, want  string
	answersAt time.Time
	settledAt time.Time
	conflicts int
}

func (w *world) step() step {
	return step{"make the world " + w.want, func(context.Context) ([]change, error) {
		if w.is == w.want {
			return nil, nil
		}
		return []change{{verb: "patch", object: "World", do: func(context.Context) error {
			if time.Now().Before(w.answersAt) {
				return apierrors.NewInternalError(errors.New(`failed calling webhook "turn.example.com": EOF`))
			}
			if w.conflicts > 0 {
				w.conflicts--
				return apierrors.NewConflict(schema.GroupResource{}, "world", errors.New("somebody was faster"))
			}
			w.is = w.want
			return nil
		}}}, nil
	}, func(context.Context) error {
		if time.Now().Before(w.settledAt) {
			return errors.New("the world still turns")
		}
		return nil
	}}
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		dryRun    bool
		is        string
		conflicts int
		answers   time.Duration // After which the webhook of worlds answers.
		settles   time.Duration
		wantIs    string
		wantOut   []string
		wantErr   string
	}{
		"Changes": {
			"what is not as wanted is changed, and awaited", false, "flat", 0, 0, time.Minute, "round",
			[]string{"patch World", "waiting: the world still turns", "done in 60.0 s"}, "",
		},
		"Nothing":   {"what is as wanted stays", false, "round", 0, 0, 0, "round", []string{"as it should be"}, ""},
		"DryRun":    {"nothing is changed or awaited", true, "flat", 0, 0, time.Hour, "flat", []string{"would patch World (dry run)"}, ""},
		"Conflict":  {"who was slower looks again", false, "flat", maxAttempts - 1, 0, 0, "round", []string{"patch World"}, ""},
		"Conflicts": {"but not for ever", false, "flat", maxAttempts, 0, 0, "flat", nil, "somebody was faster"},
		"Webhook": {
			"a webhook that does not answer is awaited", false, "flat", 0, 10 * time.Second, 0, "round",
			[]string{"waiting: patch World: ", "EOF", "done in 10.0 s"}, "",
		},
		"Silent": {"but not for ever", false, "flat", 0, time.Hour, 0, "flat", nil, "not so after 3m0s: patch World: "},
		"TooLong": {
			"what takes too long says what it waits for", false, "flat", 0, 0, time.Hour, "round", nil, "not so after 3m0s: the world still turns",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{
					is: tc.is, want: "round", answersAt: time.Now().Add(tc.answers), settledAt: time.Now().Add(tc.settles), conflicts: tc.conflicts,
				}
				var out strings.Builder
				r := runner{out: &out, dryRun: tc.dryRun, timeout: DefaultTimeout}
				err := r.runSteps(t.Context(), []step{w.step()})
				if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
					t.Errorf("%s: run() = %v, want %q", tc.reason, err, tc.wantErr)
				}
				if w.is != tc.wantIs {
					t.Errorf("%s: the world is %s, want %s", tc.reason, w.is, tc.wantIs)
				}
				for _, want := range tc.wantOut {
					if strings.Count(out.String(), want) == 0 {
						t.Errorf("%s: it does not say %q:\n%s", tc.reason, want, out.String())
					}
				}
			})
		})
	}
}

// TestTried has changes of a dry run tried: what cannot be tried yet is said, and what is refused ends the run.
func TestTried(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "moon")
	unknown := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Crater"}}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "craters"}, "c", errors.New("no more craters"))
	for name, tc := range map[string]struct {
		verb    string
		err     error
		wantOut string
		wantErr string
	}{
		"Good":        {"create", nil, "would create Crater moon/c (server dry run)", ""},
		"NoNamespace": {"create", gone, `would create Crater moon/c (not tried: namespaces "moon" not found)`, ""},
		"NoKind":      {"create", unknown, "would create Crater moon/c (not tried: no matches for kind", ""},
		"NoObject":    {"patch", gone, "", `patch Crater moon/c: namespaces "moon" not found`},
		"Refused":     {"create", refused, "", "no more craters"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			r := runner{out: &out, dryRun: true, tried: true, timeout: DefaultTimeout}
			err := r.runSteps(t.Context(), []step{{"change the moon", func(context.Context) ([]change, error) {
				return []change{{verb: tc.verb, object: "Crater moon/c", do: func(context.Context) error { return tc.err }}}, nil
			}, nil}})
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("run() = %v, want %q", err, tc.wantErr)
			}
			if !strings.Contains(out.String(), tc.wantOut) {
				t.Errorf("it does not say %q:\n%s", tc.wantOut, out.String())
			}
		})
	}
}

// TestDenied has rules of a cluster deny a change: of those of others, the error says where to read what they have to let pass.
func TestDenied(t *testing.T) {
	const page = "docs/compatibility.md#openshift-and-policy-engines"
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for says, want := range map[string]string{
		`admission webhook "validate.kyverno.svc-fail" denied the request: no root`: "What rule validate.kyverno.svc-fail has to let pass",
		`ValidatingAdmissionPolicy 'digests' with binding 'all' denied request: no`: "What rule digests has to let pass",
		`admission webhook "policies.brokering.liqo.io" denied the request: no KPI`: "",
		`ValidatingAdmissionPolicy 'a.liqo.io' with binding 'b' denied request: no`: "",
		"it is not yours": "",
	} {
		denied := apierrors.NewForbidden(resource, "liqo-broker", errors.New(says))
		r := runner{out: io.Discard, timeout: DefaultTimeout}
		err := r.runSteps(t.Context(), []step{{"run the daemon", func(context.Context) ([]change, error) {
			return []change{{verb: "create", object: "Deployment", do: func(context.Context) error { return denied }}}, nil
		}, nil}})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), page) != (want != "") || !apierrors.IsForbidden(err) {
			t.Errorf("%s: run() = %v, want %q", says, err, want)
		}
	}
}

// TestHopeless has a step find out that waiting is in vain.
func TestHopeless(t *testing.T) {
	r := runner{out: &strings.Builder{}, timeout: time.Hour}
	err := r.runSteps(t.Context(), []step{{"wait", nothing, func(context.Context) error {
		return errors.Join(errors.New("not there"), await.Hopeless(errors.New("no such image")))
	}}})
	if err == nil || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("run() = %v", err)
	}
}

// TestInterrupted has somebody press Ctrl-C while a step waits: it says that the same command goes on.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := runner{out: &strings.Builder{}, timeout: time.Hour}
	err := r.runSteps(ctx, []step{{"wait", nothing, func(context.Context) error {
		cancel()
		return errors.New("not there")
	}}})
	if err == nil || !strings.Contains(err.Error(), "run the same command again") {
		t.Errorf("run() = %v", err)
	}
}
