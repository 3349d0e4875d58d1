// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dashboardpicture draws a Grafana dashboard as an SVG: it asks a Prometheus what the panels ask, over a time range. So the picture
// in the docs shows what a user sees, without a Grafana.
//
//	go run ./test/dashboardpicture -prometheus http://HOST:9090 -dashboard deploy/monitoring/dashboards/overview.json -out docs/images/overview.svg
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

// dashboard is what of a dashboard is drawn.
type dashboard struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

// panel is one of its pictures. Places are in Grafana's grid, which has 24 columns.
type panel struct {
	Title       string                                   `json:"title"`
	Type        string                                   `json:"type"`
	GridPos     struct{ X, Y, W, H int }                 `json:"gridPos"`
	FieldConfig struct{ Defaults struct{ Unit string } } `json:"fieldConfig"`
	Targets     []struct{ Expr, LegendFormat string }    `json:"targets"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], time.Now())
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "dashboardpicture:", err)
		os.Exit(1)
	}
}

// run draws what the arguments ask for, up to some time.
func run(ctx context.Context, args []string, now time.Time) error {
	flags := flag.NewFlagSet("dashboardpicture", flag.ContinueOnError)
	prometheus := flags.String("prometheus", "http://127.0.0.1:9090", "URL of the Prometheus")
	file := flags.String("dashboard", "", "file of the dashboard")
	out := flags.String("out", "", "file of the picture")
	span := flags.Duration("range", 15*time.Minute, "time that is shown, up to now")
	var values []string
	flags.Func("var", "value of a variable of the dashboard, as NAME=VALUE; may be repeated", func(text string) error {
		name, value, found := strings.Cut(text, "=")
		if !found {
			return fmt.Errorf("use NAME=VALUE")
		}
		values = append(values, "$"+name, value)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *span < time.Second {
		return fmt.Errorf("-range=%s: must be at least a second", *span)
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return fmt.Errorf("read the dashboard: %w", err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil { //nolint:musttag // Names differ in case only.
		return fmt.Errorf("read the dashboard %s: %w", *file, err)
	}
	over := period{from: now.Add(-*span), to: now}
	answers := make([][]series, len(d.Panels))
	for i, p := range d.Panels {
		for _, target := range p.Targets {
			found, err := ask(ctx, *prometheus, strings.NewReplacer(values...).Replace(target.Expr), target.LegendFormat, over)
			if err != nil {
				return fmt.Errorf("panel %q: %w", p.Title, err)
			}
			answers[i] = append(answers[i], found...)
		}
	}
	return os.WriteFile(*out, []byte(draw(&d, answers, over)), 0o644)
}
