// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package await looks again and again until something in a cluster is as it should be, and tells people what is missing as long as it is
// not. It does not know what that is, nor what follows from it.
package await

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// interval is how long lies between two looks.
const interval = 500 * time.Millisecond

// hopelessError is an error that no waiting mends.
type hopelessError struct{ error }

func (e hopelessError) Unwrap() error { return e.error }

// Hopeless returns an error that ends the waiting of Until, as no waiting mends it.
func Hopeless(err error) error { return hopelessError{err} }

// Until looks until there is no error, and says the first line of the error whenever that changes. The error is one that is Hopeless, or
// says what was missing when the timeout was over, or that ctx has ended.
func Until(ctx context.Context, timeout time.Duration, look func(context.Context) error, say func(missing string)) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	said := ""
	var last error // Of a look that had the time it needed.
	for {
		err := look(within)
		if hopeless := (hopelessError{}); err == nil || errors.As(err, &hopeless) {
			return err
		}
		if last == nil || within.Err() == nil {
			last = err
		}
		if missing, _, _ := strings.Cut(last.Error(), "\n"); missing != said {
			said = missing
			say(missing)
		}
		select {
		case <-within.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted: %w", context.Cause(ctx))
			}
			return fmt.Errorf("not so after %s: %w", timeout, last)
		case <-ticker.C:
		}
	}
}
