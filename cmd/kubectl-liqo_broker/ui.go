// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy/whatif"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/ui"
	"github.com/capacitorset/liqo-broker/pkg/uiserver"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/answer"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/saving"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// page is how the page is served and opened.
type page struct {
	port             uint16
	route            string
	noOpen, readOnly bool
	// save is the file that the page is written into instead of being served; empty if it is served.
	save string
	hide bool
	// timeout is for how long what there is to save is waited for.
	timeout time.Duration
	// browse opens a link in a browser until its context ends, and returns [errNoBrowser] where there is none.
	browse func(ctx context.Context, link string) error
}

func (r *reading) uiCommand() *cobra.Command {
	p := page{browse: browse}
	command := &cobra.Command{
		Use:   "ui",
		Short: "Show a broker, a consumer, or what a cluster trades, in a browser",
		Long: "Show a broker in a browser: what should be looked at, providers, consumers, where pods run and why, and the map of the " +
			"federation.\nOf a consumer: which of its own pods are at brokers, and by which path they are reached.\n" +
			"Of a cluster that trades: what is for sale, its contracts and its offers, and what can be done with them.\n\n" +
			"The page is served on loopback of this machine, until the command is interrupted or nobody has used it for 12 hours. " +
			"It reads and\nchanges the cluster with the rights of your kubeconfig. It needs a link that the command prints, and that " +
			"opens it once, within a\nminute. From another machine the link works through ssh -L PORT:127.0.0.1:PORT.\n\n" +
			"With --save nothing is served: the page as it is now becomes a file that any browser opens without a network, and that changes\n" +
			"nothing. It shows all that you may see. With --hide-names pseudonyms stand for names, IDs, addresses and users, and what others\n" +
			"have written is left out.",
		Example: "  kubectl liqo-broker ui\n  kubectl liqo-broker ui --open /map --read-only\n" +
			"  kubectl liqo-broker ui --port 8443 --no-open\n" +
			"  kubectl liqo-broker ui --save page.html --hide-names",
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := p.checkFlags(command.Flags()); err != nil {
				return program.Usage(err)
			}
			if p.save != "" {
				return r.savePage(command.Context(), &p)
			}
			return r.showPage(command.Context(), &p)
		},
	}
	flags := command.Flags()
	flags.Uint16Var(&p.port, "port", 0, "port on loopback; 0 is one that is free")
	flags.StringVar(&p.route, "open", "", "what of the page is opened, as /providers")
	flags.BoolVar(&p.noOpen, "no-open", false, "open no browser: the link is printed only")
	flags.BoolVar(&p.readOnly, "read-only", false, "let the page change nothing")
	flags.StringVar(&p.save, "save", "", "write the page as it is now into this file, such as page.html, and end")
	flags.BoolVar(&p.hide, "hide-names", false, "put pseudonyms in the place of names into the saved file")
	flags.DurationVar(&p.timeout, "timeout", saving.Patience, "for how long --save waits for the cluster")
	return command
}

// checkFlags returns what does not go together.
func (p *page) checkFlags(flags *pflag.FlagSet) error {
	for _, other := range []string{"port", "open"} {
		if flags.Changed("save") && flags.Changed(other) {
			return fmt.Errorf("--save does not go with --%s: a page that is a file is not served", other)
		}
	}
	switch {
	case flags.Changed("save") && p.save == "":
		return errors.New("--save needs the name of a file")
	case p.hide && p.save == "":
		return errors.New("--hide-names needs --save: only a saved page can be without names")
	case flags.Changed("timeout") && p.save == "":
		return errors.New("--timeout needs --save: a page that is served waits for as long as it takes")
	case p.timeout <= 0:
		return errors.New("--timeout must be positive")
	case strings.ContainsAny(p.route, "#&\n"):
		return fmt.Errorf("--open %q is no route of the page: they are as /providers", p.route)
	}
	return nil
}

// savePage writes the page as it is now into a file.
func (r *reading) savePage(ctx context.Context, p *page) error {
	if err := saving.Check(p.save); err != nil {
		return err // It is known before anything is read.
	}
	r.to.limit(p.timeout)
	answers, err := r.answers(p.readOnly)
	if err != nil {
		return r.clear(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return answers.Run(ctx) })
	group.Go(func() error {
		defer cancel()
		return r.save(ctx, p, answers)
	})
	return r.clear(group.Wait())
}

// save writes a file of what answers the page.
func (r *reading) save(ctx context.Context, p *page, data http.Handler) error {
	files, err := ui.New()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("%s has not told everything within %s", r.where(), p.timeout))
	defer cancel()
	at, err := saving.Save(ctx, p.save, files, data, p.hide, r.now)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "The page of %s is saved in %s, as it was at %s\n", r.where(), p.save, at.Format(time.RFC3339))
	return nil
}

// showPage serves the page until ctx ends, or nobody uses it.
func (r *reading) showPage(ctx context.Context, p *page) error {
	// Whether there is a cluster with Liqo is said here, and not in a browser.
	answers, err := r.answers(p.readOnly)
	if err != nil {
		return r.clear(err)
	}
	files, err := ui.New()
	if err != nil {
		return err
	}
	show := func(link string) { fmt.Fprintf(r.Out, "Open within a minute, once: %s\n", link) }
	server, err := uiserver.Listen(ctx, p.port, uiserver.Config{Page: files, Data: answers, Asked: show})
	if err != nil {
		return err
	}

	// It is served while a browser opens it.
	fmt.Fprintf(r.Out, "%s is shown at %s until you press Ctrl-C\n", r.where(), server.Address())
	link := server.Link(p.route)
	show(link)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Run(ctx) })
	group.Go(func() error { return answers.Run(ctx) })
	if !p.noOpen {
		group.Go(func() error {
			if err := p.browse(ctx, link); err != nil && ctx.Err() == nil {
				fmt.Fprintf(r.ErrOut, "No browser was opened: %v\n", err)
			}
			return nil
		})
	}
	if err := group.Wait(); !errors.Is(err, uiserver.ErrIdle) {
		return err
	}
	fmt.Fprintln(r.ErrOut, "Nobody has used the page for 12 hours: it ends")
	return nil
}

// policies reads texts of policies, and tries each with what the cluster says then.
type policies struct {
	*whatif.Trier

	client client.Client
	line   line.Line
	now    func() time.Time
}

// Try implements [answer.Policies].
func (p policies) Try(ctx context.Context, text string) (apiv1.PolicyTrial, error) {
	return p.With(snapshot.Once(p.client, p.line)).Try(ctx, p.now(), text)
}

// has reports whether a cluster has a kind of brokering.liqo.io.
func has(c client.Client, kind string) (bool, error) {
	group := v1alpha1.GroupVersion
	_, err := c.RESTMapper().RESTMapping(group.WithKind(kind).GroupKind(), group.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("look for the kind %s: %w", kind, err)
	}
	return err == nil, nil
}

// answers returns what answers the page. The error may be lines.ErrNone.
func (r *reading) answers(readOnly bool) (*answer.Answers, error) {
	config, err := r.config()
	if err != nil {
		return nil, err
	}
	scheme, err := kinds()
	if err != nil {
		return nil, err
	}
	c, err := r.open()
	if err != nil {
		return nil, err
	}
	of, err := lineOf(c)
	if err != nil {
		return nil, err
	}
	// Of a cluster that is no broker its own pods are shown, whether it trades or not.
	broker, err := has(c, "Provider")
	if err != nil {
		return nil, err
	}
	trades, err := has(c, "Purchase")
	if err != nil {
		return nil, err
	}

	// What it asks besides is answered with the same rights.
	preview := func(ctx context.Context, provider cluster.ID) (apiv1.DrainPreview, error) {
		return r.previewDrain(ctx, c, provider)
	}
	trier, err := whatif.New(of, c, whatif.Admission(c))
	if err != nil {
		return nil, err
	}
	return answer.New(answer.Config{
		Policies: policies{trier, c, of, r.now},
		Rest:     config, Scheme: scheme, Line: of, Context: r.to.context(), Version: version.String(), ReadOnly: readOnly,
		Preview: preview, Broker: broker, Trades: trades, Consumes: !broker,
		Programs: shown.Programs{
			Daemon: client.ObjectKey{Namespace: install.BrokerNamespace, Name: install.BrokerName}, Liqo: liqo.DefaultNamespace,
		},
	})
}
