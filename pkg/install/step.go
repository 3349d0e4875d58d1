// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/await"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// A step brings a part of the cluster into a state. It can be taken any number of times, and begins where another one was interrupted.
type step struct {
	name string
	// changes returns what is left to do; none if all is as it should be.
	changes func(ctx context.Context) ([]change, error)
	// settled returns an error that says what is awaited, until the changes have had their effect; nil waits for nothing. An
	// error that is [await.Hopeless] ends the waiting.
	settled func(ctx context.Context) error
}

// A change is one write to the API server.
type change struct {
	// verb and object say what is written, for people: "patch", "Deployment liqo/liqo-gateway".
	verb, object string
	// before and after are the object that changes, as it is and as it will be; nil if there is only one of both.
	before, after client.Object
	do            func(ctx context.Context) error
}

// stepError is an error of a step that was begun.
type stepError struct{ error }

func (e *stepError) Unwrap() error { return e.error }

// Begun reports whether an error comes from a step that was begun, which it names: the same command goes on from there.
func Begun(err error) bool {
	step := &stepError{}
	return errors.As(err, &step)
}

// maxAttempts bounds how often a step begins again because somebody else has written the same objects.
const maxAttempts = 5

// runner takes steps.
type runner struct {
	out io.Writer
	// dryRun prints the changes in place of making them. If they are tried, they are made by a client whose writes are not kept.
	dryRun, tried bool
	// timeout is for how long each step may wait.
	timeout time.Duration
}

// runSteps takes steps in their order, and says so. It ends with the first error.
func (r *runner) runSteps(ctx context.Context, steps []step) error {
	for i, s := range steps {
		begin := time.Now()
		fmt.Fprintf(r.out, "[%d/%d] %s\n", i+1, len(steps), s.name)
		changed, err := r.take(ctx, s)
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("interrupted; run the same command again to go on: %w", context.Cause(ctx))
			}
			return &stepError{fmt.Errorf("step %d of %d, %s: %w%s", i+1, len(steps), s.name, err, whoDenies(err))}
		}
		switch {
		case changed == 0:
			fmt.Fprintln(r.out, "      as it should be")
		case !r.dryRun:
			fmt.Fprintf(r.out, "      done in %.1f s\n", time.Since(begin).Seconds())
		}
	}
	return nil
}

// take takes one step, and returns how many changes it needed. It begins again when somebody else has written the same objects, and waits
// for webhooks that the API server cannot call: those of a Deployment that was just changed answer by pods that are ending.
func (r *runner) take(ctx context.Context, s step) (changed int, err error) {
	attempt := 0
	if err := r.wait(ctx, func(context.Context) error { // A write that has begun is not cut short by the time for waiting.
		for {
			attempt++
			changes, err := s.changes(ctx)
			if err == nil {
				err = r.apply(ctx, changes)
				changed += len(changes)
			}
			switch {
			case err == nil || unanswered(err):
				return err
			case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || attempt >= maxAttempts:
				return await.Hopeless(err)
			}
		}
	}); err != nil {
		return changed, err
	}
	if r.dryRun || s.settled == nil {
		return changed, nil
	}
	return changed, r.wait(ctx, s.settled)
}

// unanswered reports whether an error means that the API server could not call a webhook
// (k8s.io/apiserver/pkg/util/webhook/error.go@v0.34.4, ErrCallingWebhook).
func unanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// denials match how the API server says that a rule of the cluster denies a write, and have the name of the rule
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go and pkg/admission/plugin/policy/validating/plugin.go@v0.34.4).
var denials = regexp.MustCompile(
	`admission webhook "([^"]+)" denied the request|ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request`)

// whoDenies says of an error where to read what rules of a cluster have to let pass, if one has denied a write that is neither ours nor
// Liqo's; else nothing.
func whoDenies(err error) string {
	found := denials.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	rule := found[1] + found[2]
	if strings.HasSuffix(rule, ".liqo.io") {
		return ""
	}
	return fmt.Sprintf(". What rule %s has to let pass: %s", rule, version.Document("docs/compatibility.md#openshift-and-policy-engines"))
}

// apply makes changes, or only says them.
func (r *runner) apply(ctx context.Context, changes []change) error {
	for _, c := range changes {
		if r.dryRun {
			if err := r.show(ctx, c); err != nil {
				return fmt.Errorf("%s %s: %w", c.verb, c.object, err)
			}
			continue
		}
		fmt.Fprintf(r.out, "      %s %s\n", c.verb, c.object)
		if err := c.do(ctx); err != nil {
			return fmt.Errorf("%s %s: %w", c.verb, c.object, err)
		}
	}
	return nil
}

// show says what a change of a dry run would be, and, if it is tried, what becomes otherwise by it.
func (r *runner) show(ctx context.Context, c change) error {
	var lines []string
	if r.tried {
		var err error
		if lines, err = difference(c.before, c.after); err != nil { // Before it is tried, which writes into it.
			return err
		}
	}
	mark, err := r.try(ctx, c)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "      would %s %s (%s)\n", c.verb, c.object, mark)
	for _, line := range lines {
		fmt.Fprintf(r.out, "        %s\n", sheet.Plain(line))
	}
	return nil
}

// try tries a change of a dry run, if it is to, and returns what it was. What is created in a namespace or of a kind that an earlier step
// creates cannot be tried before that is there.
func (r *runner) try(ctx context.Context, c change) (string, error) {
	if !r.tried {
		return "dry run", nil
	}
	err := c.do(ctx)
	if c.verb == "create" && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)) {
		return "not tried: " + sheet.Plain(firstLine(err.Error())), nil
	}
	return "server dry run", err
}

// wait waits until something has settled, and says what it waits for whenever that changes.
func (r *runner) wait(ctx context.Context, settled func(context.Context) error) error {
	return await.Until(ctx, r.timeout, settled, func(missing string) { fmt.Fprintf(r.out, "      waiting: %s\n", sheet.Plain(missing)) })
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
