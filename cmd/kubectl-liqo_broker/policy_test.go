// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/test/golden"
)

const header = "apiVersion: brokering.liqo.io/v1alpha1\nkind: PlacementPolicy\n"

func TestPolicyCheck(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		good bool
		args string
	}{
		"policy_good.txt": {good: true, file: `# The fastest.
` + header + `metadata: {name: fastest}
spec:
  appliesTo: {scope: Default}
  filters: ["kpi.roundTripTime < 100"]
  weights: {roundTripTime: -5}
  maxProviders: 1
`},
		"policy_good.yaml": {
			good: true, args: " -o yaml", file: header +
				"metadata: {name: all}\nspec: {appliesTo: {scope: Consumers, consumers: [33333333-dddd]}}\n",
		},
		"policy_two.txt": {file: header + `metadata: {name: unknown-kpi}
spec:
  appliesTo: {scope: Consumers, consumers: [nobody]}
  weights: {karbon: -1}
---
# Nothing.
---
` + header + `metadata: {name: wrong}
spec:
  appliesTo: {scope: Default}
  filters: ["kpi.roundTripTime <"]
`},
		"policy_nobody.txt": {file: header + "metadata: {name: nobody}\nspec: {appliesTo: {scope: Default}, filters: ['name == \"athens\"']}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			at := newCLI(t, federation()...)
			out, _, err := at.run(t, "policy check "+file+c.args)
			if good := err == nil; good != c.good || !good && !errors.Is(err, errUnhealthy) {
				t.Errorf("error %v, good %t", err, c.good)
			}
			golden.Check(t, name, out)
			var kept v1alpha1.PlacementPolicyList
			if err := at.client.List(t.Context(), &kept); err != nil || len(kept.Items) > 0 {
				t.Errorf("%d policies are written, %v", len(kept.Items), err)
			}
		})
	}
}

// TestPolicyCheckBesideItself checks a policy that is there with another spec, beside one that goes before it.
func TestPolicyCheckBesideItself(t *testing.T) {
	mine, other := policy("mine"), policy("other")
	mine.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"nobody"}}
	other.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeNamespaces, Namespaces: &v1alpha1.NamespaceBinding{Names: []string{"shop"}}}
	other.Spec.Priority = 5
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(
		file, []byte(header+"metadata: {name: mine}\nspec: {appliesTo: {scope: Namespaces, namespaces: {names: [shop]}}}\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	at := newCLI(t, append(federation(), mine, other)...)
	out, _, err := at.run(t, "policy check "+file)
	if err != nil || !strings.HasPrefix(out,
		"Policy mine is good\n* Other policies of the same scope go before this one, by priority or else by name: other") ||
		!strings.Contains(out, "It would choose for consumer rome") {
		t.Errorf("%v:\n%s", err, out)
	}
	var kept v1alpha1.PlacementPolicy
	if err := at.client.Get(t.Context(), client.ObjectKey{Name: "mine"}, &kept); err != nil ||
		kept.Spec.AppliesTo.Scope != v1alpha1.ScopeConsumers {
		t.Errorf("it is now %+v, %v", kept.Spec, err)
	}
}

func TestPolicyCheckRefused(t *testing.T) {
	good := header + "metadata: {name: fastest}\nspec: {appliesTo: {scope: Default}}\n"
	kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "PlacementPolicy"}
	for name, c := range map[string]struct {
		content  string
		err      error
		says     string // In the error.
		prints   string
		exitCode int
	}{
		"Empty": {content: "# Nothing\n", says: "has no PlacementPolicy", exitCode: program.ExitFailure},
		"OtherKind": {
			content: "apiVersion: v1\nkind: Pod\n", says: `this is a Pod of "v1", and not only PlacementPolicies`, exitCode: program.ExitFailure,
		},
		"NotYAML":  {content: "a: [", says: "is not YAML", exitCode: program.ExitFailure},
		"Misspelt": {content: header + "spec: {filter: [x]}\n", says: `unknown field "spec.filter"`, exitCode: program.ExitFailure},
		"Invalid": {
			content: good, err: apierrors.NewInvalid(kind, "fastest", nil), says: errUnhealthy.Error(), prints: "! The API server refuses it: ",
			exitCode: exitUnhealthy,
		},
		"MayNot": {
			content: good, err: apierrors.NewForbidden(schema.GroupResource{}, "", nil), prints: "* You may not write placement policies",
		},
		"OtherFault": {content: good, err: errors.New("broken"), says: "check placement policy fastest: broken", exitCode: program.ExitFailure},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			at := &cli{client: interceptor.NewClient(newFake(t, federation()...), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.err },
			})}
			out, _, err := at.run(t, "policy check "+file)
			if !strings.Contains(out, c.prints) || (err == nil) != (c.says == "") {
				t.Errorf("%q, %v", out, err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || program.ExitCode(err) != c.exitCode) {
				t.Errorf("%v, exit code %d", err, program.ExitCode(err))
			}
		})
	}
	if _, _, err := newCLI(t).run(t, "policy check /nonexistent"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
}

// TestPolicyExamples checks the policies that the project gives as examples.
func TestPolicyExamples(t *testing.T) {
	files, err := filepath.Glob("../../deploy/examples/placementpolicies/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if _, _, err := newCLI(t, federation()...).run(t, "policy check "+file); err != nil && !errors.Is(err, errUnhealthy) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
