// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
)

const (
	known   = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	other   = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	invited = "liqo-registry:https://registry.example:30443,fp=" + known + ",token=TOPSECRET"
)

// joined returns the only Registry of a cluster that is not in a market, and the token in its Secret.
func joined(t *testing.T, c client.Client) (*connectorv1alpha1.Registry, string) {
	t.Helper()
	var list connectorv1alpha1.RegistryList
	if err := c.List(t.Context(), &list); err != nil || len(list.Items) > 1 {
		t.Fatalf("%d registries, %v", len(list.Items), err)
	}
	if len(list.Items) == 0 {
		return nil, ""
	}
	var secret corev1.Secret
	err := c.Get(t.Context(), client.ObjectKey{Namespace: tradeNamespace, Name: list.Items[0].Spec.TokenSecret.Name}, &secret)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return &list.Items[0], string(secret.Data[tokenKey])
}

func TestJoin(t *testing.T) {
	at := func(fingerprint string) discovery.Found {
		return discovery.Found{Name: "milan", URL: "https://registry.example:30443", Fingerprint: fingerprint}
	}
	validated := at(known)
	validated.Validated = true
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("TOPSECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	both := []discovery.Found{at(other), at(known)}
	const byDNS = "registry join example.org --resolver 192.0.2.1:53"
	for name, tc := range map[string]struct {
		reason, line string
		found        []discovery.Found
		typed        string
		print, token string
		refused      string
	}{
		"Invitation": {"an invitation is believed", "registry join " + invited, nil, "", known, "TOPSECRET", ""},
		"Input":      {"it may come by the standard input", "registry join -", nil, invited + "\n", known, "TOPSECRET", ""},
		"Contradicts": {
			"its fingerprint is compared", "registry join " + invited + " --fingerprint " + other, nil, "", "", "", "another fingerprint",
		},
		"URL":        {"a URL alone is one of an ordinary certificate", "registry join https://registry.example:30443", nil, "", "", "", ""},
		"URLWithKey": {"or of a key", "registry join https://registry.example:30443 --fingerprint " + known, nil, "", known, "", ""},
		"Token": {
			"a token comes in a file", "registry join https://registry.example:30443 --token-file " + file, nil, "", "", "TOPSECRET", "",
		},
		"Confirmed": {"somebody has compared it", byDNS, []discovery.Found{at(known)}, "y\n", known, "", ""},
		"Declined":  {"somebody has seen that it is another one", byDNS, []discovery.Found{at(other)}, "\n", "", "", "nothing is done"},
		"Spoofed": {
			"a TXT record that anybody has sent is not believed", byDNS, []discovery.Found{at(other)}, "", "", "", "anybody could have answered",
		},
		"SpoofedKey": {
			"nor one that differs", byDNS + " --fingerprint " + known, []discovery.Found{at(other)}, "", "", "", "another fingerprint",
		},
		"SameKey": {"the same one is", byDNS + " --fingerprint " + known, []discovery.Found{at(known)}, "", known, "", ""},
		"NoKeyInDNS": {
			"what the operator says counts where the DNS has none", byDNS + " --fingerprint " + known, []discovery.Found{at("")}, "", known, "", "",
		},
		"Stripped":  {"without a fingerprint somebody is asked too", byDNS, []discovery.Found{at("")}, "", "", "", "anybody could have answered"},
		"Yes":       {"somebody wants it", byDNS + " --yes", []discovery.Found{at(known)}, "", known, "", ""},
		"Validated": {"DNSSEC says that nobody has changed it", byDNS, []discovery.Found{validated}, "", known, "", ""},
		"ValidatedOther": {
			"the operator's word is the stronger one", byDNS + " --fingerprint " + other, []discovery.Found{validated}, "", "", "",
			"another fingerprint",
		},
		"Local": {"the only one of the network is confirmed", "registry join --lan", []discovery.Found{at(known)}, "y\n", known, "", ""},
		"LocalUnasked": {
			"nobody believes the network unasked", "registry join --lan", []discovery.Found{at(known)}, "", "", "", "anybody could have answered",
		},
		"FirstAnswer": {
			"who answers first in the name of another one is not taken", "registry join --lan milan", both, "y\n", "", "", "2 registries",
		},
		"FirstAnswerYes": {
			"also with --yes", "registry join --lan milan --yes", both, "", "", "", "2 registries",
		},
		"AmongLiars": {
			"the fingerprint says which one it is", "registry join --lan --fingerprint " + known, both, "", known, "", "",
		},
		"LocalOtherName": {"a name chooses", "registry join --lan rome", []discovery.Found{at(known)}, "y\n", "", "", "no registry of that name"},
		"NoArgument":     {"something has to be named", "registry join", nil, "", "", "", "an invitation, a domain or a URL is needed"},
		"BadInvitation":  {"an invitation is checked", "registry join " + invited + ",x=TOPSECRET", nil, "", "", "", "only fp and token"},
		"BadURL":         {"so is a URL", "registry join http://registry.example", nil, "", "", "", "https://HOST"},
		"BadFingerprint": {"and a fingerprint", "registry join --lan --fingerprint abc", nil, "", "", "", "--fingerprint"},
		"BadResolver":    {"and a resolver", "registry join example.org --resolver here", nil, "", "", "", "--resolver"},
		"BadName":        {"and a name", "registry join " + invited + " --name A_B", nil, "", "", "", "--name"},
		"EmptyTokenFile": {"and a token", "registry join " + invited + " --token-file " + os.DevNull, nil, "", "", "", "--token-file"},
		"DryRunAsksNone": {
			"a dry run asks nobody, and keeps nothing", byDNS + " --dry-run=client", []discovery.Found{at(known)}, "", "", "", "-",
		},
		"DryRunContradict": {
			"but it says what would be refused", byDNS + " --dry-run --fingerprint " + known, []discovery.Found{at(other)}, "", "", "", "another",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t)
			cli.typed, cli.found = tc.typed, tc.found
			out, errOut, err := cli.run(t, tc.line)
			if strings.Contains(out+errOut, "TOPSECRET") || err != nil && strings.Contains(err.Error(), "TOPSECRET") {
				t.Errorf("the token is shown:\n%s%s%v", out, errOut, err)
			}
			registry, token := joined(t, cli.client)
			switch {
			case tc.refused == "-" && err == nil && registry == nil:
			case tc.refused != "":
				if err == nil || !strings.Contains(err.Error(), tc.refused) || registry != nil {
					t.Errorf("%s: %v, %+v, want an error that says %q\n%s%s", tc.reason, err, registry, tc.refused, out, errOut)
				}
			case err != nil || registry == nil:
				t.Errorf("%s: %v, %+v\n%s%s", tc.reason, err, registry, out, errOut)
			case registry.Spec.URL != "https://registry.example:30443" || registry.Spec.Fingerprint != tc.print || token != tc.token ||
				registry.Name != "registry.example" || !*registry.Spec.Publish:
				t.Errorf("%s: %+v with token %q\n%s", tc.reason, registry, token, out)
			case !strings.Contains(out, "The registry is at https://registry.example:30443, fingerprint "+shownFingerprint(tc.print)):
				t.Errorf("%s: it is not said what is joined:\n%s", tc.reason, out)
			}
		})
	}
}

// TestJoinAgain holds that a registry is joined once, that another one does not take its place, and that a token of before is replaced.
func TestJoinAgain(t *testing.T) {
	cli := newCLI(t)
	if _, _, err := cli.run(t, "registry join "+invited+" --name eu --publish=false"); err != nil {
		t.Fatal(err)
	}
	if registry, _ := joined(t, cli.client); registry.Name != "eu" || *registry.Spec.Publish {
		t.Errorf("%+v", registry)
	}
	if out, _, err := cli.run(t, "registry join "+invited+" --name eu"); err != nil || !strings.Contains(out, "registry eu is already used") {
		t.Errorf("again: %v: %s", err, out)
	}
	_, _, err := cli.run(t, "registry join --name eu "+strings.ReplaceAll(invited, known, other))
	if err == nil || !strings.Contains(err.Error(), "another URL or fingerprint") {
		t.Errorf("another one of the same name: %v", err)
	}
	registry, _ := joined(t, cli.client)
	if err := cli.client.Delete(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	if out, _, err := cli.run(t, "registry join --name eu "+strings.ReplaceAll(invited, "TOPSECRET", "NEXT")); err != nil ||
		!strings.Contains(out, "replaced") {
		t.Errorf("after it was left: %v: %s", err, out)
	}
	if _, token := joined(t, cli.client); token != "NEXT" {
		t.Errorf("the token is %q", token)
	}
}

// TestWhoIsTrusted holds that a resolver elsewhere is believed about DNSSEC only if somebody says so.
func TestWhoIsTrusted(t *testing.T) {
	for flag, want := range map[string]bool{"": false, "--trust-resolver": true} {
		cli := newCLI(t)
		cli.found = []discovery.Found{{Name: "a", URL: "https://a.example", Fingerprint: known}}
		if _, _, err := cli.run(t, "registry join example.org --dry-run --resolver 127.0.0.1:53 "+flag); err != nil {
			t.Fatal(err)
		}
		if cli.asked.Trusted != want || cli.asked.Address != "127.0.0.1:53" {
			t.Errorf("with %q: %+v", flag, cli.asked)
		}
	}
	_, _, err := newCLI(t).run(t, "registry join example.org --resolver 192.0.2.1")
	if program.ExitCode(err) != program.ExitUsage || errors.Is(err, errUnhealthy) {
		t.Errorf("%v", err)
	}
}
