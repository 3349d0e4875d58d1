// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnosis looks at each step of the set-up of a broker or of a consumer, from Liqo's flags to tunnels, relay addresses and the
// resource plugin, and at what a connector needs to buy and sell, and says of each whether it is as it should be, and what to do if not. It
// writes nothing.
//
// It does not know how an installation is made: it asks package install for its steps; nor what is wrong with providers, consumers and
// policies: package overview says that.
package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// State is how a thing is that was looked at.
type State string

// States, the worst first.
const (
	Problem State = "problem"
	// Unknown: it cannot be said, for lack of a right or of an answer.
	Unknown State = "unknown"
	// Note: it may be meant to be so.
	Note State = "note"
	OK   State = "ok"
)

// marks are what people see of a state.
var marks = map[State]string{Problem: "!", Unknown: "?", Note: "*", OK: " "}

// Check is what was found of one thing.
type Check struct {
	// Area is what it belongs to, such as "Virtual kubelets".
	Area  string `json:"area"`
	State State  `json:"state"`
	What  string `json:"what"`
	// Do is what to do about it; empty if nothing is.
	Do string `json:"do,omitempty"`
}

// Diagnosis is all that was found of a cluster.
type Diagnosis struct {
	// Healthy is true if there is no problem.
	Healthy bool `json:"healthy"`
	// Roles are what the cluster is: broker, consumer, trader, several of them or none. One that only shares its resources, for which Liqo is
	// enough, is a provider. With Liqo 1.x it may also be a catalog, or guarded by itself.
	Roles []string `json:"roles"`
	// Liqo, Kubernetes and Plugin are versions; empty if they are not known.
	Liqo       string `json:"liqo,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	Plugin     string `json:"plugin,omitempty"`
	// Checks are in the order in which things depend on each other.
	Checks []Check `json:"checks"`
}

// Config is what a diagnosis needs.
type Config struct {
	Client client.Client
	Now    time.Time
	// Unguarded asks what the connector asks before it trades, with its rights, and returns why it does not; empty if it does. Nil is not
	// asked.
	Unguarded func(ctx context.Context) (why string, err error)
	// Observe reads what a broker has; it is asked only on one.
	Observe func(ctx context.Context, c client.Client) (overview.Observed, error)
	// Plugin and Kubernetes are versions.
	Plugin, Kubernetes string
}

// look is one diagnosis that is being made.
type look struct {
	client.Client
	unguarded func(ctx context.Context) (why string, err error)
	now       time.Time
	setup     install.Setup
}

// Run makes a diagnosis. Its error says that nothing can be said: the API server cannot be reached, or ctx is done.
func Run(ctx context.Context, cfg Config) (*Diagnosis, error) {
	d := &Diagnosis{Plugin: cfg.Plugin, Kubernetes: cfg.Kubernetes, Roles: []string{}}
	installer, err := install.New(cfg.Client, install.Options{}, io.Discard)
	if err != nil {
		return nil, err
	}
	// What runs here decides what is looked at. Without a Liqo that is known, nothing else can be said.
	l := &look{Client: cfg.Client, unguarded: cfg.Unguarded, now: cfg.Now}
	l.setup, err = installer.Look(ctx)
	d.Liqo = l.setup.Version
	requirement := &install.RequirementError{}
	switch {
	case errors.As(err, &requirement):
		d.Checks = []Check{{"Liqo", Problem, requirement.Error(), ""}}
		return d, nil
	case err != nil:
		return nil, err
	}
	// The areas in the order in which they are shown.
	var areas []area
	if l.setup.Liqo1() {
		areas = l.areas1(ctx, cfg, d, installer)
	} else {
		areas = l.areas(ctx, cfg, d, installer)
	}

	// They are independent of each other, and each keeps its place.
	found := make([][]Check, len(areas))
	group, inGroup := errgroup.WithContext(ctx)
	for n, of := range areas {
		group.Go(func() error {
			found[n] = of(inGroup)
			return nil
		})
	}
	if err := group.Wait(); err != nil || ctx.Err() != nil {
		return nil, cmp.Or(err, context.Cause(ctx))
	}
	d.Checks = slices.Concat(found...)
	d.Healthy = !slices.ContainsFunc(d.Checks, func(c Check) bool { return c.State == Problem })
	return d, nil
}

// area looks at what belongs together.
type area = func(ctx context.Context) []Check

// areas returns what is looked at with Liqo 0.9: each role of the cluster, which it notes, brings its own.
func (l *look) areas(ctx context.Context, cfg Config, d *Diagnosis, installer *install.Installer) []area {
	areas := []area{l.liqo, l.nodes, func(ctx context.Context) []Check { return l.steps(ctx, installer) }}
	if l.setup.Broker {
		d.Roles = append(d.Roles, "broker")
		areas = append(areas, l.daemon, l.services, l.certificates)
	}
	if l.setup.Broker || l.setup.Trades {
		areas = append(areas, l.guard)
	}
	if len(l.setup.RemoteIPAMs) > 0 {
		d.Roles = append(d.Roles, "consumer")
		areas = append(areas, l.remoteIPAMs, l.paths, l.policies)
	}
	// Who may not see whether there is a connector is told that it is not known, and everything else.
	connector, err := l.trades(ctx)
	switch {
	case err != nil:
		areas = append(areas, func(context.Context) []Check { return cannot(connectorArea, "whether there is a connector", err) })
	case connector != nil:
		d.Roles = append(d.Roles, "trader")
		areas = append(areas, func(ctx context.Context) []Check { return l.connector(ctx, connector) })
	}
	if len(d.Roles) == 0 {
		areas = append(areas, l.provides(ctx, d))
	}
	areas = append(areas, l.peers, l.kubelets, l.secrets)
	if l.setup.Broker {
		areas = append(areas, l.relays, func(ctx context.Context) []Check { return l.objects(ctx, cfg.Observe) })
	}
	areas = append(areas, l.events)
	return areas
}

// provides looks at a cluster on which nothing of this project was set up, and notes whether it is a provider.
func (l *look) provides(ctx context.Context, d *Diagnosis) area {
	provides, checks := l.withoutRole(ctx)
	if provides {
		d.Roles = append(d.Roles, "provider")
	}
	return func(context.Context) []Check { return checks }
}

// areas1 returns what is looked at with Liqo 1.x, and notes the roles of the cluster.
func (l *look) areas1(ctx context.Context, cfg Config, d *Diagnosis, installer *install.Installer) []area {
	areas := []area{l.liqo, l.nodes, func(ctx context.Context) []Check { return l.steps(ctx, installer) }}
	if l.setup.Broker || l.setup.Catalog {
		areas = append(areas, l.daemon)
	}
	if l.setup.Broker {
		areas = append(areas, l.servicesOfDaemon, func(ctx context.Context) []Check {
			return l.webhooks(ctx, "Certificates", install.BrokerName, daemonLogs)
		})
	}
	if l.setup.Broker || l.setup.Guarded {
		areas = append(areas, l.guard)
	}
	for _, role := range []struct {
		is   bool
		name string
	}{{l.setup.Broker, "broker"}, {l.setup.Catalog, "catalog"}, {len(l.setup.Brokers) > 0, "consumer"}, {l.setup.Guarded, "guarded"}} {
		if role.is {
			d.Roles = append(d.Roles, role.name)
		}
	}
	if len(d.Roles) == 0 {
		areas = append(areas, l.provides(ctx, d))
	}
	if len(l.setup.Brokers) > 0 {
		areas = append(areas, l.grants, l.paths, l.policies)
	}
	areas = append(areas, l.peers, l.said, l.stopped, l.gateways)
	if l.setup.Broker {
		areas = append(areas, func(ctx context.Context) []Check { return l.objects(ctx, cfg.Observe) })
	}
	return append(areas, l.events)
}

// String returns a diagnosis as text: all things by area, each with its mark.
func (d *Diagnosis) String() string {
	var out strings.Builder
	is := strings.Join(d.Roles, " and ")
	fmt.Fprintf(&out, "This cluster is: %s\n", cmp.Or(is, "neither a broker nor a consumer, and does not trade"))
	fmt.Fprintf(&out, "Versions: Liqo %s, Kubernetes %s, plugin %s\n",
		sheet.Plain(cmp.Or(d.Liqo, "unknown")), sheet.Plain(cmp.Or(d.Kubernetes, "unknown")), sheet.Plain(cmp.Or(d.Plugin, "unknown")))
	area := ""
	count := map[State]int{}
	for _, c := range d.Checks {
		if c.Area != area {
			area = c.Area
			fmt.Fprintf(&out, "\n%s\n", area)
		}
		count[c.State]++
		fmt.Fprintf(&out, "%s %s\n", marks[c.State], sheet.Sentence(c.What))
		if c.Do != "" {
			fmt.Fprintf(&out, "  %s\n", sheet.Plain(c.Do))
		}
	}
	fmt.Fprintf(&out, "\n%d problems (!), %d unknown (?), %d notes (*), %d as they should be\n", count[Problem], count[Unknown],
		count[Note], count[OK])
	return out.String()
}

// cannot is what is said of an area that cannot be read.
func cannot(area, what string, err error) []Check {
	do := "Ask somebody who may: an administrator of this cluster sees all"
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		do = "Try again"
	}
	if meta.IsNoMatchError(err) {
		do = "The kind is missing: finish the installation of Liqo and of the broker"
	}
	return []Check{{area, Unknown, fmt.Sprintf("Cannot read %s: %v", what, err), do}}
}

// one is the single check of an area.
func one(area string, state State, do, format string, args ...any) Check {
	return Check{area, state, fmt.Sprintf(format, args...), do}
}
