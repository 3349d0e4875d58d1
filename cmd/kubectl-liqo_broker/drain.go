// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// emptying is whether, and for how long, a command waits until a provider is empty.
type emptying struct {
	wait    bool
	timeout time.Duration
}

// add adds the flags to a command.
func (e *emptying) add(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&e.wait, "wait", true, "wait until no pod is left on the provider, and say what is left")
	flags.DurationVar(&e.timeout, "timeout", 0, "for how long --wait waits; 0 is as long as it takes")
}

// check refuses what cannot be meant.
func (e *emptying) check() error {
	if e.timeout < 0 {
		return program.Usage(errors.New("--timeout must not be negative"))
	}
	return nil
}

// errLeft is the end of a wait that was too long: pods are left, and go on moving.
var errLeft = program.WithCode(errors.New("it is not drained yet"), exitUnhealthy)

// patience is how often the broker may not have seen a change before somebody is told.
const patience = 3

// emptied waits until no pod is left on a provider, and says what is left whenever that changes. What moves the pods is the broker: it goes
// on when the wait ends.
func (r *reading) emptied(ctx context.Context, c client.Client, provider cluster.Identity, timeout time.Duration) error {
	called := "provider " + sheet.Plain(provider.String())
	left, said, unseen := "", "", 0
	// Each look says whether it is over, and prints what is left if that is news.
	look := func(ctx context.Context) (bool, error) {
		var p v1alpha1.Provider
		if err := c.Get(ctx, types.NamespacedName{Name: string(provider.ID)}, &p); err != nil {
			return false, fmt.Errorf("get provider %s: %w", provider.ID, err)
		}
		if is := p.EffectiveScheduling(); is != v1alpha1.SchedulingDrained {
			return false, fmt.Errorf("%s is not to be drained any more: somebody made it %s", called, is)
		}
		// A broker that runs sees the change at once. What its status says of before would lead astray.
		left = "The broker has not seen the change yet"
		if draining := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDraining); draining != nil &&
			draining.ObservedGeneration == p.Generation {
			left = sheet.Plain(draining.Message)
		} else if unseen++; unseen < patience {
			return false, nil
		}
		if !p.MayHavePods() {
			return true, nil
		}
		if left != said {
			said = left
			fmt.Fprintln(r.ErrOut, left)
		}
		return false, nil
	}
	// Without a timeout it is looked for as long as somebody waits.
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err := wait.PollUntilContextCancel(ctx, lookedEvery, true, look)
	switch {
	case err == nil:
		fmt.Fprintln(r.Out, called+" drained")
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s after %s: %w: %s", called, timeout, errLeft, left)
	default:
		return err
	}
}
