// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	// tradeNamespace is where the connector is, and tokenKey what it calls a token in a Secret.
	tradeNamespace, tokenKey = "liqo-broker-connector", "token"
	// maxInput bounds what is read from a file or a terminal, in bytes.
	maxInput = 4096
)

// joining is what the command registry join was told.
type joining struct {
	name, fingerprint, tokenFile string
	publish, yes, lan            bool
	resolver                     string
	trustResolver                bool
}

// you is who types a URL.
const you = "you"

// proposal is a registry that is about to be used, and who says that it is the one that is meant.
type proposal struct {
	discovery.Invitation

	// by is who proposes it, and sure that nobody need confirm it.
	by   string
	sure bool
}

func (r *reading) registryJoinCommand() *cobra.Command {
	var j joining
	command := &cobra.Command{
		Use:   "join INVITATION|DOMAIN|URL|-",
		Short: "Use a registry: by an invitation of its operator, or as the DNS or the local network say where one is",
		Long: "Use a registry: make its Registry, and the Secret with the token that lets this cluster in.\n\n" +
			"INVITATION is what registry invite prints; - reads it from the standard input, where other processes do not see the token.\n" +
			"Of a DOMAIN the DNS is asked, and with --lan the local network. Whoever answers may lie: the URL and the fingerprint of the key\n" +
			"are shown, and you are asked whether they are what the operator says. Without a terminal, --fingerprint says what the operator\n" +
			"does. Nobody is asked if the records of the domain were validated by DNSSEC, as a resolver says that is trusted: the one of\n" +
			"/etc/resolv.conf if it is on this machine and the file has the option trust-ad, or any with --trust-resolver.",
		Example: "  kubectl liqo-broker registry join liqo-registry:https://registry.example:30443,fp=FINGERPRINT,token=TOKEN\n" +
			"  kubectl liqo-broker registry join example.org\n  kubectl liqo-broker registry join --lan",
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			if err := j.check(args); err != nil {
				return err
			}
			c, err := r.openTarget(command.Context())
			if err != nil {
				return err
			}
			return r.trades(r.joinRegistry(command.Context(), c, &j, args))
		},
	}
	flags := command.Flags()
	flags.StringVar(&j.name, "name", "", "name of the Registry (default the host)")
	flags.StringVar(&j.fingerprint, "fingerprint", "", "fingerprint of the registry's key, as its operator says it; another one is refused")
	flags.StringVar(&j.tokenFile, "token-file", "", "file with the token that the operator gives you")
	flags.BoolVar(&j.publish, "publish", true, "publish the offers of this cluster there")
	flags.BoolVar(&j.yes, "yes", false, "believe what was found, and do not ask")
	flags.BoolVar(&j.lan, "lan", false, "look for a registry in the local network; the argument is its name, if there are several")
	flags.StringVar(&j.resolver, "resolver", "", "HOST:PORT of the resolver that is asked for a DOMAIN (default that of /etc/resolv.conf)")
	flags.BoolVar(&j.trustResolver, "trust-resolver", false, "believe the resolver when it says that it has validated a record by DNSSEC")
	r.dryRun.add(command)
	return command
}

// check returns what is wrong with the command line.
func (j *joining) check(args []string) error {
	if len(args) == 0 && !j.lan {
		return program.Usage(errors.New("an invitation, a domain or a URL is needed, or --lan"))
	}
	if j.fingerprint != "" {
		if err := discovery.CheckFingerprint(j.fingerprint); err != nil {
			return program.Usage(fmt.Errorf("--fingerprint: %w", err))
		}
	}
	if j.resolver != "" {
		if _, _, err := net.SplitHostPort(j.resolver); err != nil {
			return program.Usage(fmt.Errorf("--resolver=%s: it is not HOST:PORT", j.resolver))
		}
	}
	return nil
}

// joinRegistry makes the objects of a registry, once somebody has said that it is the one that is meant.
func (r *reading) joinRegistry(ctx context.Context, c client.Client, j *joining, args []string) error {
	found, err := r.propose(ctx, j, args)
	if err != nil {
		return err
	}
	if j.tokenFile != "" {
		text, err := readBounded(j.tokenFile)
		if err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		if err := discovery.CheckToken(text); err != nil {
			return program.Usage(fmt.Errorf("--token-file=%s: %w", j.tokenFile, err))
		}
		found.Token = text
	}
	if err := r.confirm(j, found); err != nil {
		return err
	}
	o, err := j.registry(found)
	if err != nil {
		return err
	}
	return r.use(ctx, c, o, found.Token)
}

// propose returns the registry that the arguments mean.
func (r *reading) propose(ctx context.Context, j *joining, args []string) (p proposal, err error) {
	text := ""
	if len(args) > 0 {
		text = args[0]
	}
	if text == "-" {
		if text, err = trimmed(r.In); err != nil {
			return p, fmt.Errorf("read the standard input: %w", err)
		}
	}
	// What it looks like says what it is.
	switch {
	case j.lan:
		found, err := r.local(ctx)
		if err != nil {
			return p, err
		}
		found = slices.DeleteFunc(found, func(f discovery.Found) bool { return text != "" && f.Name != text })
		return r.one(j, found, "the local network")
	case strings.HasPrefix(text, discovery.Scheme):
		if p.Invitation, err = discovery.ParseInvitation(text); err != nil {
			return p, program.Usage(fmt.Errorf("the invitation: %w", err))
		}
		p.by, p.sure = "the invitation", true
	case strings.Contains(text, "://"):
		if err := discovery.CheckURL(text); err != nil {
			return p, program.Usage(fmt.Errorf("%.80q: %w", text, err))
		}
		p.URL, p.by, p.sure = text, you, true
		p.Fingerprint = j.fingerprint
	default: // A domain.
		resolver, err := j.resolverOf()
		if err != nil {
			return p, err
		}
		found, err := r.inDomain(ctx, resolver, text)
		if err != nil {
			return p, fmt.Errorf("look for a registry of %.253s: %w", text, err)
		}
		return r.one(j, found, "the DNS")
	}
	return p, nil
}

// resolverOf returns who is asked for a domain.
func (j *joining) resolverOf() (*discovery.Resolver, error) {
	resolver := discovery.Resolver{Address: j.resolver}
	if j.resolver == "" {
		var err error
		if resolver, err = discovery.SystemResolver("/etc/resolv.conf"); err != nil {
			return nil, err
		}
	}
	resolver.Trusted = resolver.Trusted || j.trustResolver
	return &resolver, nil
}

// one returns the registry that is meant among those that were found: the one with the fingerprint that somebody knows, or the only one.
func (r *reading) one(j *joining, found []discovery.Found, by string) (proposal, error) {
	fits := slices.DeleteFunc(slices.Clone(found), func(f discovery.Found) bool {
		return j.fingerprint != "" && f.Fingerprint != j.fingerprint && f.Fingerprint != ""
	})
	if len(fits) == 1 {
		f := fits[0]
		if f.Fingerprint == "" {
			f.Fingerprint = j.fingerprint
		}
		return proposal{Invitation: discovery.Invitation{URL: f.URL, Fingerprint: f.Fingerprint}, by: by, sure: f.Validated}, nil
	}
	for _, f := range found {
		fmt.Fprintf(r.ErrOut, "%s: %s, fingerprint %s\n", sheet.Plain(f.Name), sheet.Plain(f.URL), shownFingerprint(f.Fingerprint))
	}
	switch {
	case len(found) == 0:
		return proposal{}, fmt.Errorf("%s knows no registry of that name", by)
	case len(fits) == 0:
		return proposal{}, fmt.Errorf("%s shows another fingerprint than --fingerprint: it is not the registry that its operator means", by)
	}
	return proposal{}, program.Usage(fmt.Errorf("%s shows %d registries: say --fingerprint, or the name of one, as NAME with --lan and as "+
		"NAME.%s.DOMAIN in the DNS", by, len(fits), discovery.Service))
}

func shownFingerprint(text string) string {
	if text == "" {
		return "none: it shows an ordinary certificate"
	}
	return text
}

// confirm asks somebody whether the registry is the one that is meant, unless that is sure. Of a dry run nobody is asked: it says what it
// would do.
func (r *reading) confirm(j *joining, p proposal) error {
	fmt.Fprintf(r.Out, "The registry is at %s, fingerprint %s: so say%s %s\n", sheet.Plain(p.URL), shownFingerprint(p.Fingerprint),
		map[bool]string{false: "s"}[p.by == you], p.by)
	switch {
	case j.fingerprint != "" && p.Fingerprint != j.fingerprint:
		return fmt.Errorf("%s shows another fingerprint than --fingerprint: it is not the registry that its operator means", p.by)
	case p.sure, j.yes, j.fingerprint != "", r.dryRun != dryRunNone:
		return nil
	case !r.terminal():
		return program.Usage(fmt.Errorf("anybody could have answered in the place of the registry, and nobody can be asked here: say the "+
			"fingerprint that its operator tells you by --fingerprint, or believe %s by --yes", p.by))
	}
	fmt.Fprint(r.Out, "Is this what the operator of the registry has told you? [y/N] ")
	answer, err := trimmed(r.In)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)) {
		return errors.New("nothing is done: ask the operator of the registry for its fingerprint, or for an invitation")
	}
	return nil
}

// isTerminal reports whether somebody types what is read.
func isTerminal(in io.Reader) bool {
	f, is := in.(*os.File)
	return is && term.IsTerminal(int(f.Fd())) //nolint:gosec // A file's number is small.
}

// registry returns the Registry.
func (j *joining) registry(p proposal) (*connectorv1alpha1.Registry, error) {
	name := j.name
	if name == "" {
		host, _, _ := strings.Cut(strings.TrimPrefix(p.URL, "https://"), "/")
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		name = strings.Trim(strings.ReplaceAll(strings.ToLower(strings.Trim(host, "[]")), ":", "-"), "-.")
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || len(name)+len(tokenSuffix) > validation.DNS1123SubdomainMaxLength {
		return nil, program.Usage(fmt.Errorf("%.80q cannot be the name of a Registry: say another one by --name", name))
	}
	o := &connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec.URL, o.Spec.Fingerprint, o.Spec.Publish = p.URL, p.Fingerprint, new(j.publish)
	if p.Token != "" {
		o.Spec.TokenSecret.Name = name + tokenSuffix
	}
	return o, nil
}

// tokenSuffix is what follows the name of a Registry in that of the Secret with its token.
const tokenSuffix = "-token"

// use writes the Secret, and then the Registry that names it. A Registry that is there already stays, if it is of the same registry.
func (r *reading) use(ctx context.Context, c client.Client, o *connectorv1alpha1.Registry, token string) error {
	var there connectorv1alpha1.Registry
	err := c.Get(ctx, client.ObjectKeyFromObject(o), &there)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get registry %s: %w", o.Name, err)
	}
	if err == nil {
		if there.Spec.URL == o.Spec.URL && there.Spec.Fingerprint == o.Spec.Fingerprint {
			fmt.Fprintf(r.Out, "registry %s is already used%s\n", o.Name, r.dryRun.mark())
			return nil
		}
		return fmt.Errorf("there is a registry %s with another URL or fingerprint: look at it with kubectl get registries -o yaml, and say "+
			"another --name, or delete it", o.Name)
	}
	if token != "" {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tradeNamespace, Name: o.Spec.TokenSecret.Name}}
		secret.Data = map[string][]byte{tokenKey: []byte(token)}
		deed := "created"
		err := c.Create(ctx, secret)
		if apierrors.IsAlreadyExists(err) { // Of an attempt before, or of a registry that was left.
			deed, err = "replaced", c.Update(ctx, secret)
		}
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no namespace %s: install the connector before. See %s", tradeNamespace,
				version.Document("docs/trade/README.md"))
		} else if err != nil {
			return fmt.Errorf("create secret %s/%s: %w", tradeNamespace, secret.Name, err)
		}
		fmt.Fprintf(r.Out, "secret %s/%s %s%s\n", tradeNamespace, secret.Name, deed, r.dryRun.mark())
	}
	if err := c.Create(ctx, o); err != nil {
		return fmt.Errorf("create registry %s: %w", o.Name, err)
	}
	fmt.Fprintf(r.Out, "registry %s created%s\n", o.Name, r.dryRun.mark())
	if r.dryRun == dryRunNone {
		fmt.Fprintf(r.ErrOut, "See how it goes: kubectl liqo-broker registry. Leave it with: kubectl delete registry %s\n", o.Name)
	}
	return nil
}

// readBounded returns the text of a file, without the spaces around it.
func readBounded(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return trimmed(f)
}

// trimmed returns the first line of what somebody has written, without the spaces around it.
func trimmed(from io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(from, maxInput)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(line), nil
}
