// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// maxPolicyFile is the most that is read of a file: etcd takes no larger object.
const maxPolicyFile = 8 << 20

func (r *reading) policyCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "policy",
		Short:   "Check placement policies before they are applied",
		Example: "  kubectl liqo-broker policy check cheapest.yaml",
	}
	command.AddCommand(r.policyCheckCommand())
	return command
}

func (r *reading) policyCheckCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:   "check FILE",
		Short: "Check the placement policies of a file, and show what they would choose now",
		Long: "Check the placement policies of a file, or of the standard input with -, as the broker and its API server do, and show which " +
			"providers\nthey would choose now for which consumers, if nothing had been chosen before. Nothing is written. With a policy that is " +
			"not valid,\nweighs a KPI that no provider has, or cannot choose, the exit code is 3.",
		Example: "  kubectl liqo-broker policy check cheapest.yaml",
		Args:    usage(cobra.ExactArgs(1)),
		// A file that cannot be read is an error; a policy that is wrong is what was looked for, and has an exit code of its own.
		RunE: func(command *cobra.Command, args []string) error {
			policies, err := r.readPolicies(args[0])
			if err != nil {
				return err
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			checks := make([]overview.PolicyCheck, len(policies))
			healthy := true
			for i := range policies {
				if checks[i], err = r.checkPolicy(command.Context(), c, &policies[i]); err != nil {
					return r.clear(r.onBroker(command.Context(), c, err))
				}
				healthy = healthy && checks[i].Good
			}
			// For programs, or for people with a gap between two policies.
			if done, err := out.value(r.Out, checks); err != nil {
				return err
			} else if !done {
				for i := range checks {
					if i > 0 {
						fmt.Fprintln(r.Out)
					}
					if err := checks[i].Print(r.Out, func(table *metav1.Table) error { return out.table(r.Out, table) }); err != nil {
						return err
					}
				}
			}
			if !healthy {
				return errUnhealthy
			}
			return nil
		},
	}
	out.addFlags(command, formatJSON, formatYAML)
	return command
}

// checkPolicy tries a policy.
func (r *reading) checkPolicy(ctx context.Context, c client.Client, p *v1alpha1.PlacementPolicy) (overview.PolicyCheck, error) {
	check := overview.PolicyCheck{Name: p.Name}
	defaulted, err := admit(ctx, c, p)
	switch {
	case apierrors.IsForbidden(err):
		check.Notes = append(check.Notes, "You may not write placement policies, so that the API server has not checked it against its schema")
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		check.Problems = append(check.Problems, "The API server refuses it: "+err.Error())
	case err != nil:
		return check, fmt.Errorf("check placement policy %s: %w", p.Name, err)
	default:
		p = defaulted
	}
	// The broker's own code decides, as if nothing had been chosen before.
	of, err := lineOf(c)
	if err != nil {
		return check, err
	}
	trial, err := placementpolicy.Try(ctx, of, c, r.now(), p)
	if err != nil {
		return check, err
	}
	if trial.Invalid != nil {
		check.Problems = append(check.Problems, trial.Invalid.Error())
	}
	for _, condition := range trial.Conditions {
		switch condition.Reason {
		case v1alpha1.ReasonUnknownKPI:
			check.Problems = append(check.Problems, condition.Message)
		case v1alpha1.ReasonOtherPolicy:
			check.Notes = append(check.Notes, condition.Message)
		}
	}
	// What it would choose, and what that cannot say.
	if trial.Scales {
		check.Notes = append(check.Notes,
			"How many are chosen depends on spec.scaling, whose KPI only the broker asks for: here it counts as unknown")
	}
	for i := range trial.Decisions {
		check.Add(r.now(), &trial.Decisions[i].ConsumerDecision, trial.Decisions[i].Err)
	}
	check.Good = len(check.Problems) == 0
	return check, nil
}

// admit lets the API server check a policy, and returns what it would keep.
func admit(ctx context.Context, c client.Client, p *v1alpha1.PlacementPolicy) (*v1alpha1.PlacementPolicy, error) {
	kept := p.DeepCopy()
	err := c.Create(ctx, kept, client.DryRunAll)
	if !apierrors.IsAlreadyExists(err) {
		return kept, err
	}
	var existing v1alpha1.PlacementPolicy
	if err := c.Get(ctx, client.ObjectKeyFromObject(p), &existing); err != nil {
		return nil, err
	}
	kept = p.DeepCopy()
	kept.ResourceVersion = existing.ResourceVersion
	return kept, c.Update(ctx, kept, client.DryRunAll)
}

// readPolicies reads the placement policies of a file; there is at least one, and nothing else.
func (r *reading) readPolicies(file string) ([]v1alpha1.PlacementPolicy, error) {
	var content []byte
	var err error
	if file == "-" {
		content, err = io.ReadAll(io.LimitReader(r.In, maxPolicyFile))
	} else {
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	// Several policies may be in a file, and nothing else: what would be passed over would count as checked.
	var policies []v1alpha1.PlacementPolicy
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
	defer documents.Close()
	buffer := make([]byte, len(content)+1)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the policy: %w", err)
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(buffer[:n], &kind); err != nil {
			return nil, fmt.Errorf("%s is not YAML: %w", file, err)
		}
		if kind == (metav1.TypeMeta{}) && len(bytes.TrimSpace(withoutComments(buffer[:n]))) == 0 {
			continue
		}
		if kind.APIVersion != v1alpha1.GroupVersion.String() || kind.Kind != "PlacementPolicy" {
			return nil, fmt.Errorf("%s has a %s of %q, and not only PlacementPolicies of %s", file, kind.Kind, kind.APIVersion,
				v1alpha1.GroupVersion)
		}
		// A field that is misspelt is an error, as it is for the API server.
		var p v1alpha1.PlacementPolicy
		if err := yaml.UnmarshalStrict(buffer[:n], &p); err != nil {
			return nil, fmt.Errorf("%s has a PlacementPolicy that cannot be read: %w", file, err)
		}
		policies = append(policies, p)
	}
	if len(policies) == 0 {
		return nil, fmt.Errorf("%s has no PlacementPolicy", file)
	}
	return policies, nil
}

// withoutComments returns a document without the lines that are comments or begin a document.
func withoutComments(document []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(document) {
		if trimmed := bytes.TrimSpace(line); !bytes.HasPrefix(trimmed, []byte("#")) && !bytes.Equal(trimmed, []byte("---")) {
			kept = append(kept, line...)
		}
	}
	return kept
}
