// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports opens the ports of a program, and runs what serves them. It does not know what is
// served, nor to whom.
package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Port is a port of a program.
type Port struct {
	// Flag is the flag by which people give the address; errors name it.
	Flag string
	// Address is what to listen on; the port stays closed if it is empty or "0".
	Address string
	// Serve serves until the context ends.
	Serve func(context.Context, net.Listener) error
}

// Opened returns those of some ports that do not stay closed.
func Opened(all []Port) []Port {
	return slices.DeleteFunc(slices.Clone(all), func(p Port) bool { return p.Address == "" || p.Address == "0" })
}

// After has a port served by a value, once that is there. Get waits for it, and returns an error if ctx ends before: nothing is served
// then.
func After[T any](
	get func(context.Context) (T, error), serve func(T, context.Context, net.Listener) error,
) func(context.Context, net.Listener) error {
	return func(ctx context.Context, listener net.Listener) error {
		value, err := get(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // The program ends.
		case err != nil:
			return err
		}
		return serve(value, ctx, listener)
	}
}

// Run opens ports, and serves them while the rest of the program runs beside them. It returns when
// all have ended: because the context has, or one of them failed, or a port cannot be opened, and
// then the rest does not begin.
func Run(ctx context.Context, all []Port, rest func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := serve(ctx, group, all); err != nil {
		stop()
		return errors.Join(err, group.Wait())
	}
	group.Go(func() error { return rest(ctx) })
	return group.Wait()
}

// serve opens ports, and serves them in a group until the context ends. It returns when all are
// open, or one cannot be; those that are open by then close when the context ends.
func serve(ctx context.Context, group *errgroup.Group, all []Port) error {
	for _, p := range Opened(all) {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Address)
		if err != nil {
			return fmt.Errorf("%s=%s: %w", p.Flag, p.Address, err)
		}
		group.Go(func() error {
			defer listener.Close() // Closed already, unless the program ends before it serves.
			return p.Serve(ctx, listener)
		})
	}
	return nil
}
