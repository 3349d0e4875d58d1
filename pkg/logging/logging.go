// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging makes the one logger of a program: zap behind logr.
//
// It knows two levels, as the rest does: info for operators, and debug (V(1))
// for developers. What to log is the business of the others.
package logging

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Options are the choices of the command line. The zero value is valid: lines
// for people, at level info.
type Options struct {
	// Level is debug, info or error. Empty is info.
	Level string
	// Format is console (lines for people) or json. Empty is console.
	Format string
}

// AddFlags adds the flags that set the options.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Level, "log-level", "info", "what to log: debug, info or error")
	flags.StringVar(&o.Format, "log-format", "console", "how to log: console or json")
}

// New returns a logger that writes to the standard error.
func New(o Options) (logr.Logger, error) {
	config := zap.NewProductionConfig()
	config.DisableStacktrace = true
	config.DisableCaller = true
	config.Sampling = nil
	config.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder
	switch o.Level {
	case "debug":
		// logr's V(1) is zap's debug; the levels above it are not shown.
		config.Level = zap.NewAtomicLevelAt(zapcore.DebugLevel)
	case "info", "":
		config.Level = zap.NewAtomicLevelAt(zapcore.InfoLevel)
	case "error":
		config.Level = zap.NewAtomicLevelAt(zapcore.ErrorLevel)
	default:
		return logr.Discard(), fmt.Errorf("--log-level=%s: must be debug, info or error", o.Level)
	}
	switch o.Format {
	case "json":
		config.Encoding = "json"
	case "console", "":
		config.Encoding = "console"
	default:
		return logr.Discard(), fmt.Errorf("--log-format=%s: must be console or json", o.Format)
	}
	z, err := config.Build()
	if err != nil {
		return logr.Discard(), fmt.Errorf("make the logger: %w", err)
	}
	return zapr.NewLogger(z), nil
}
