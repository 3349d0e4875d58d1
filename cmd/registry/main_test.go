// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/test/commandline"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// asCommand is set where the program of the tests is to be the command itself.
const asCommand = "REGISTRY_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestHelp compares the help of all commands with the golden file.
func TestHelp(t *testing.T) {
	var out bytes.Buffer
	var show func(c *cobra.Command)
	show = func(c *cobra.Command) {
		fmt.Fprintf(&out, "# %s\n\n", c.CommandPath())
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out)
		for _, sub := range c.Commands() {
			if sub.Name() != "help" {
				show(sub)
			}
		}
	}
	show(newCommand())
	golden.Check(t, "help.txt", out.String())
}

// TestUnit holds that what the service of systemd and the container of the page for operators run is a command with its flags, and that the
// service keeps its state where systemd makes a folder for it.
func TestUnit(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/registry/systemd/liqo-broker-registry.service")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/trade/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	service := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/registry (.*)$`).FindSubmatch(unit)
	container := regexp.MustCompile(`(?m)capacitorset/liqo-broker-registry:\S+ (.*)$`).FindSubmatch(page)
	if service == nil || container == nil {
		t.Fatalf("the unit starts %q, and the container %q", service, container)
	}
	for _, line := range []string{string(service[1]), string(container[1])} {
		root := newCommand()
		command, rest, err := root.Find(strings.Fields(line))
		if err != nil || command == root {
			t.Fatalf("registry %s: %v", line, err)
		}
		if err := command.ParseFlags(rest); err != nil || command.Flags().NArg() > 0 {
			t.Errorf("registry %s: %v, with the arguments %q", line, err, command.Flags().Args())
		}
	}

	folder := regexp.MustCompile(`(?m)^StateDirectory=(.*)$`).FindSubmatch(unit)
	if folder == nil {
		t.Fatal("the unit has no folder")
	}
	for _, kept := range []string{"--key-file=/var/lib/%s/registry.key", storeVariable + "=sqlite:/var/lib/%s/registry.db"} {
		if kept = fmt.Sprintf(kept, folder[1]); !strings.Contains(string(unit), kept) {
			t.Errorf("the unit does not say %s", kept)
		}
	}
	if !strings.Contains(string(page), fmt.Sprintf("`--store sqlite:/var/lib/%s/registry.db`", folder[1])) {
		t.Error("docs/trade/operator.md does not say where the store of the service is")
	}
}

// TestMistyped gives commands what they cannot mean: each says so, and exits as the command line that cannot be understood.
func TestMistyped(t *testing.T) {
	for line, says := range map[string]string{
		"tokns list":                            `unknown command "tokns" for "registry": did you mean tokens? See registry --help`,
		"parties lsit":                          `unknown command "lsit" for "registry parties": did you mean list? See registry parties --help`,
		"tokens bogus":                          `unknown command "bogus" for "registry tokens": see registry tokens --help`,
		"offers bogus":                          `unknown command "bogus" for "registry offers": see registry offers --help`,
		"help bogus":                            `unknown command "bogus" for "registry": see registry --help`,
		"parties list all":                      `unexpected argument "all": see registry parties list --help`,
		"parties approve":                       "requires at least 1 arg(s), only received 0: see registry parties approve --help",
		"parties list --all":                    "unknown flag: --all: see registry parties list --help",
		"parties list --state=no":               "--state=no: must be Pending, Approved or Revoked",
		"parties drop":                          "--pending is required: parties that are approved are put out by revoke",
		"tokens list -o xml":                    "--output=xml: must be table or json",
		"tokens create --uses=0":                "--uses=0: must be between 1 and 1000000",
		"serve --max-offers=0":                  "--max-offers=0: must be positive",
		"invite":                                "accepts 1 arg(s), received 0: see registry invite --help",
		"invite http://x":                       `"http://x": it is not https://HOST[:PORT][/PATH]`,
		"invite https://x --uses=-1":            "--uses=-1: must be between 1 and 1000000",
		"serve --mdns --address=127.0.0.1:8443": "--mdns announces to others what --address=127.0.0.1:8443 opens to this machine alone",
		"serve --mdns --address=:0":             "--mdns needs a number as the port of --address=:0",
		"serve --mdns --tls-cert-file=a --tls-private-key-file=b": "--mdns announces the fingerprint of the registry's own key, " +
			"which --tls-cert-file does not show",
		"migrate --store=": "--store must not be empty",
	} {
		var out bytes.Buffer
		command := newCommand()
		command.SetArgs(strings.Fields(line))
		command.SetOut(&out)
		err := command.ExecuteContext(t.Context())
		if err == nil || err.Error() != says || program.ExitCode(err) != program.ExitUsage || out.Len() > 0 {
			t.Errorf("%s: %v, exit code %d, and prints %q", line, err, program.ExitCode(err), out.String())
		}
	}
}

// registry is a folder with the state of a registry, which is served by a process of its own.
type registry struct {
	t       *testing.T
	folder  string
	address string
}

// command returns the program with arguments.
func (r *registry) command(args ...string) *exec.Cmd {
	command := exec.CommandContext(context.WithoutCancel(r.t.Context()), os.Args[0], args...)
	command.Env = append(os.Environ(), asCommand+"=1", storeVariable+"=sqlite:"+filepath.Join(r.folder, "registry.db"))
	return command
}

// run runs a command, and returns what it prints.
func (r *registry) run(args ...string) string {
	r.t.Helper()
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("registry %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// serve starts the registry, and waits until it is ready. It returns what kills it.
func (r *registry) serve() (kill func()) {
	r.t.Helper()
	process := r.command("serve", "--address="+r.address, "--key-file="+r.keyFile(), "--metrics-address=0", "--health-address=0")
	var log bytes.Buffer
	process.Stdout, process.Stderr = &log, &log
	if err := process.Start(); err != nil {
		r.t.Fatal(err)
	}
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		if err := process.Process.Kill(); err != nil { // SIGKILL
			r.t.Error(err)
		}
		_ = process.Wait() // It was killed.
		if r.t.Failed() {
			r.t.Logf("the registry says:\n%s", log.String())
		}
	}
	r.t.Cleanup(kill)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		connection, err := (&net.Dialer{}).DialContext(r.t.Context(), "tcp", r.address)
		if err == nil {
			connection.Close()
			return kill
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the registry is not there: %v\n%s", err, log.String())
		}
	}
}

func (r *registry) keyFile() string { return filepath.Join(r.folder, "registry.key") }

// key returns the fingerprint of the registry's key.
func (r *registry) key() string {
	r.t.Helper()
	text, err := os.ReadFile(r.keyFile())
	if err != nil {
		r.t.Fatal(err)
	}
	key, err := party.ParseKey(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return party.Fingerprint(key.Public())
}

// TestKilledRegistry kills a registry at once after it has let a party in and taken its offer: when it is back it has the same key, the
// party and the offer, and the token is used up.
func TestKilledRegistry(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &registry{t: t, folder: t.TempDir(), address: listener.Addr().String()}
	listener.Close()
	if out, err := r.command("fingerprint", "--key-file="+r.keyFile()).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "no such file") {
		t.Errorf("the fingerprint of no key: %v\n%s", err, out)
	}
	kill := r.serve()
	key := r.key()
	const url = "https://registry.example:30443"
	invited, err := discovery.ParseInvitation(strings.TrimSpace(r.run("invite", url, "--key-file="+r.keyFile(), "--comment=for seller")))
	if err != nil || invited.URL != url || invited.Fingerprint != key || !strings.Contains(r.run("tokens", "list"), "for seller") {
		t.Errorf("registry invite prints %+v, %v", invited, err)
	}
	o := serveOptions{address: "0.0.0.0:30443", keyFile: r.keyFile()}
	if a, err := o.announcer(); err != nil || a.Port != 30443 || a.Fingerprint != key || a.Name == "" {
		t.Errorf("--mdns announces %+v, %v", a, err)
	}
	token := invited.Token
	if out := r.run("invite", url, "--uses=0", "--ordinary-certificate"); out != "liqo-registry:"+url+"\n" {
		t.Errorf("an invitation without a fingerprint and a token is %q", out)
	}
	if out := r.run("fingerprint", "--key-file="+r.keyFile()); out != key+"\n" {
		t.Errorf("registry fingerprint prints %q, want %s", out, key)
	}
	seller := registrytest.NewParty(t, "seller")
	c := seller.Client(t, r.address, key)
	if _, err := c.Announce(t.Context(), seller.ID, seller.Enrolment(t, 1, token)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), seller.ID, "small", seller.Offer(t, "small", 1)); err != nil {
		t.Fatal(err)
	}
	kill()

	r.serve()
	if again := r.key(); again != key {
		t.Errorf("the registry has the key %s, and had %s", again, key)
	}
	c.Close()
	offers, err := seller.Client(t, r.address, key).Offers(t.Context(), nil)
	if err != nil || len(offers) != 1 {
		t.Errorf("after it was killed the registry shows %d offers (%v), want the one that it had taken", len(offers), err)
	}
	thief := registrytest.NewParty(t, "thief")
	said, err := thief.Client(t, r.address, key).Announce(t.Context(), thief.ID, thief.Enrolment(t, 1, token))
	if err == nil && said.State != "Pending" {
		t.Errorf("the token lets a second party in: %+v", said)
	}

	// People see the same, and put parties out.
	if out := r.run("parties", "list", "--state=Approved"); !strings.Contains(out, seller.ID) || strings.Contains(out, thief.ID) {
		t.Errorf("parties list:\n%s", out)
	}
	waiting := registrytest.NewParty(t, "waiting")
	if said, err := waiting.Client(t, r.address, key).Announce(t.Context(), waiting.ID, waiting.Enrolment(t, 1, "")); err != nil ||
		said.State != "Pending" {
		t.Fatalf("a party without a token: %+v, %v", said, err)
	}
	if out := r.run("parties", "drop", "--pending", "--waited=1h"); out != "0 parties dropped\n" {
		t.Errorf("parties drop of those that have waited for an hour prints %q", out)
	}
	if out := r.run("parties", "drop", "--pending"); out != "1 parties dropped\n" {
		t.Errorf("parties drop prints %q", out)
	}
	if out := r.run("parties", "list"); !strings.Contains(out, seller.ID) || strings.Contains(out, waiting.ID) {
		t.Errorf("parties list, without who was dropped:\n%s", out)
	}
	if out := r.run("offers", "list"); !strings.Contains(out, "small") {
		t.Errorf("offers list:\n%s", out)
	}
	r.run("parties", "revoke", seller.ID)
	if out := r.run("offers", "list", "--output=json"); strings.Contains(out, "small") {
		t.Errorf("offers of who was put out:\n%s", out)
	}
	deadline := time.Now().Add(10 * time.Second)
	for out := seller.Client(t, r.address, key); ; time.Sleep(20 * time.Millisecond) {
		if _, err := out.Offers(t.Context(), nil); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("who was put out reads what is offered")
		}
	}
}

// TestRefusedArguments gives commands what they cannot mean.
func TestRefusedArguments(t *testing.T) {
	r := &registry{t: t, folder: t.TempDir()}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"Store":    {[]string{"migrate", "--store=mysql://x"}, "--store"},
		"Address":  {[]string{"serve", "--address=nowhere"}, "--address"},
		"NoPort":   {[]string{"serve", "--address=0"}, "--address"},
		"Lease":    {[]string{"serve", "--lease=1ms"}, "--lease"},
		"Offers":   {[]string{"serve", "--max-offers=0"}, "--max-offers"},
		"HalfTLS":  {[]string{"serve", "--tls-cert-file=x"}, "--tls-private-key-file"},
		"Uses":     {[]string{"tokens", "create", "--uses=0"}, "--uses"},
		"ValidFor": {[]string{"tokens", "create", "--valid-for=-1h"}, "--valid-for"},
		"NoToken":  {[]string{"tokens", "delete", "abcdefabcdef"}, "no token"},
		"NoParty":  {[]string{"parties", "approve", "abcdefabcdef"}, "no party"},
		"State":    {[]string{"parties", "list", "--state=Asleep"}, "--state"},
		"DropAll":  {[]string{"parties", "drop"}, "--pending"},
		"Waited":   {[]string{"parties", "drop", "--pending", "--waited=-1h"}, "--waited"},
		"Output":   {[]string{"offers", "list", "--output=xml"}, "xml"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := r.command(tc.args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tc.want) || strings.Contains(string(out), "panic") {
				t.Errorf("registry %s: %v, want an error that names %s:\n%s", strings.Join(tc.args, " "), err, tc.want, out)
			}
		})
	}
}

// TestStrayArguments gives each command more arguments than it takes.
func TestStrayArguments(t *testing.T) { commandline.RefuseStrays(t, newCommand) }
