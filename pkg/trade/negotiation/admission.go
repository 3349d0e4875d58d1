// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/expression"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

const (
	// maxRules and maxExpression bound rules, and maxRuleCost the evaluation of each, in CEL's unit of cost: a comparison costs about two.
	maxRules, maxExpression, maxRuleCost = 64, 2048, 10_000
)

// Rule decides about applications for which an expression in CEL is true. Its variables are buyer (text), and
//
//	buyer.held (numbers by name, in base units: what the buyer has already by its other contracts; 0 of what it asks for and has none of)
//	terms.offer, terms.plan, terms.currency (text), terms.hours (number, from start to end), terms.revision (number),
//	terms.resources (numbers by name, in base units: terms.resources["cpu"] >= 2.0)
//	offer.id, offer.kind, offer.region, offer.zone, offer.type (text), offer.labels, offer.properties (texts by name)
type Rule struct {
	Expression string
	Verdict    contract.Verdict
	// Reason is what a buyer is told for Deny.
	Reason string
}

// Owners refuses contracts for clusters that are not the buyer's, and asks another Admission about the others.
type Owners struct {
	Admission

	// Owns reports whether a party has a cluster, and whether that is known: of a party that no registry shows, it may not be.
	Owns func(ctx context.Context, id party.ID, of cluster.ID) (owns, known bool, err error)
}

// Admit implements Admission.
func (o Owners) Admit(ctx context.Context, application Application) (contract.Verdict, string, error) {
	id := application.Terms.Cluster.ID
	switch owns, known, err := o.Owns(ctx, application.Buyer, id); {
	case err != nil:
		return "", "", fmt.Errorf("find out whose cluster %s is: %w", id, err)
	case !known:
		return contract.Deny, "no registry of this seller shows which clusters the buyer has, and it has no contract for cluster " +
			string(id), nil
	case !owns:
		return contract.Deny, "cluster " + string(id) + " is not one that the buyer announces, or another party has announced it before", nil
	}
	return o.Admission.Admit(ctx, application)
}

// Rules decide about applications: the first whose expression is true. It can be used concurrently.
type Rules struct {
	rules     []compiledRule
	otherwise contract.Verdict
}

type compiledRule struct {
	Rule

	program cel.Program
}

var _ Admission = (*Rules)(nil)

// NewRules compiles rules; otherwise is the verdict where none is true. The error names the rule; it is expression.ErrBuilds of one that
// could grow without bound.
func NewRules(rules []Rule, otherwise contract.Verdict) (*Rules, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("%d rules are more than %d", len(rules), maxRules)
	}
	text, texts := cel.StringType, cel.MapType(cel.StringType, cel.StringType)
	options := []cel.EnvOption{
		cel.CrossTypeNumericComparisons(true),
		cel.Variable("buyer", text), cel.Variable("buyer.held", cel.MapType(cel.StringType, cel.DoubleType)),
		cel.Variable("terms.hours", cel.DoubleType), cel.Variable("terms.revision", cel.IntType),
		cel.Variable("terms.resources", cel.MapType(cel.StringType, cel.DoubleType)),
		cel.Variable("offer.labels", texts), cel.Variable("offer.properties", texts),
	}
	for _, name := range []string{
		"terms.offer", "terms.plan", "terms.currency", "offer.id", "offer.kind", "offer.region", "offer.zone", "offer.type",
	} {
		options = append(options, cel.Variable(name, text))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("make the environment of rules: %w", err)
	}
	compiled := &Rules{otherwise: otherwise}
	if err := known(otherwise); err != nil {
		return nil, err
	}
	for i, rule := range rules {
		program, err := compileRule(env, rule)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		compiled.rules = append(compiled.rules, compiledRule{rule, program})
	}
	return compiled, nil
}

func known(verdict contract.Verdict) error {
	switch verdict {
	case contract.Accept, contract.Ask, contract.Deny:
		return nil
	}
	return fmt.Errorf("verdict %q is not Accept, Ask or Deny", verdict)
}

func compileRule(env *cel.Env, rule Rule) (cel.Program, error) {
	if err := known(rule.Verdict); err != nil {
		return nil, err
	}
	if len(rule.Expression) > maxExpression {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(rule.Expression), maxExpression)
	}
	ast, err := expression.Compile(env, rule.Expression)
	if err != nil {
		return nil, fmt.Errorf("%q does not compile: %w", rule.Expression, err)
	}
	program, err := env.Program(ast, cel.CostLimit(maxRuleCost))
	if err != nil {
		return nil, fmt.Errorf("%q cannot be used: %w", rule.Expression, err)
	}
	return program, nil
}

// Admit implements Admission. A rule that has no value for an application, or costs too much, denies: the rules after it do not decide
// what it was meant for.
func (r *Rules) Admit(_ context.Context, a Application) (contract.Verdict, string, error) {
	resources, held := numbers(a.Terms.Resources), numbers(a.Held)
	for name := range resources {
		if _, has := held[name]; !has {
			held[name] = 0
		}
	}
	variables := map[string]any{
		"buyer": string(a.Buyer), "buyer.held": held, "terms.offer": a.Terms.Offer, "terms.plan": a.Terms.Plan,
		"terms.currency": a.Terms.Price.Currency, "terms.hours": a.Terms.EndsAt.Sub(a.Terms.StartsAt).Hours(), "terms.revision": a.Terms.Revision,
		"terms.resources": resources, "offer.id": a.Offer.ID, "offer.kind": string(a.Offer.Kind), "offer.region": a.Offer.Region,
		"offer.zone": a.Offer.Zone, "offer.type": a.Offer.Type, "offer.labels": a.Offer.Labels, "offer.properties": a.Offer.Properties,
	}
	for i, rule := range r.rules {
		value, _, err := rule.program.Eval(variables)
		if err != nil {
			return contract.Deny, fmt.Sprintf("rule %d of the seller has no value for this application", i+1), nil //nolint:nilerr // It denies.
		}
		if value.Value() == true {
			return rule.Verdict, strings.TrimSpace(rule.Reason), nil
		}
	}
	return r.otherwise, "", nil
}

// numbers returns quantities in base units.
func numbers(list corev1.ResourceList) map[string]float64 {
	all := make(map[string]float64, len(list))
	for name, quantity := range offer.FromList(list) {
		all[name] = float64(quantity.Milli()) / 1000
	}
	return all
}
