// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
)

// Admit lets the API server check a policy, and returns what it would keep. It writes nothing.
type Admit func(ctx context.Context, p *v1alpha1.PlacementPolicy) (*v1alpha1.PlacementPolicy, error)

// Trier tries policies. It may be used concurrently.
type Trier struct {
	line    line.Line
	objects client.Reader
	admit   Admit
	schema  definitions
}

// New returns what tries policies on what a reader has of a cluster with a line of Liqo. Without Admit, the API server is not asked.
func New(of line.Line, objects client.Reader, admit Admit) (*Trier, error) {
	s, err := readSchema()
	if err != nil {
		return nil, err
	}
	return &Trier{line: of, objects: objects, admit: admit, schema: s}, nil
}

// With returns the same on what another reader has.
func (t *Trier) With(objects client.Reader) *Trier {
	other := *t
	other.objects = objects
	return &other
}

// Admission returns an [Admit] with the rights of a client.
func Admission(c client.Client) Admit {
	return func(ctx context.Context, p *v1alpha1.PlacementPolicy) (*v1alpha1.PlacementPolicy, error) {
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
}

// Check is what comes of a policy that is tried.
type Check struct {
	// Policy is what the API server would keep, or what was written if it was not asked.
	Policy *v1alpha1.PlacementPolicy
	// Faults are what is wrong with the text: with any, it decides nothing. Problems have these too, and what else keeps it from deciding
	// well; Notes are what should be known. What keeps it from deciding for a consumer alone is in Trial.
	Faults          apiv1.FaultsError
	Problems, Notes []string
	Trial           placementpolicy.Trial
}

// Check tries a policy: the broker's own code decides, as if nothing had been decided before.
func (t *Trier) Check(ctx context.Context, now time.Time, d *Document) (*Check, error) {
	c := &Check{Policy: d.Policy}
	if err := t.askServer(ctx, c, d); err != nil {
		return c, err
	}
	var err error
	if c.Trial, err = placementpolicy.Try(ctx, t.line, t.objects, now, c.Policy); err != nil {
		return c, err
	}
	if invalid := c.Trial.Invalid; invalid != nil {
		c.Problems = append(c.Problems, invalid.Error())
		c.Faults = append(c.Faults, d.ofRules(invalid))
	}
	for _, condition := range c.Trial.Conditions {
		switch condition.Reason {
		case v1alpha1.ReasonUnknownKPI:
			c.Problems = append(c.Problems, condition.Message)
		case v1alpha1.ReasonOtherPolicy:
			c.Notes = append(c.Notes, condition.Message)
		}
	}
	if c.Trial.Scales {
		c.Notes = append(c.Notes, "How many are chosen depends on spec.scaling, whose KPI only the broker asks for: here it counts as unknown")
	}
	return c, nil
}

// askServer has the API server say what it thinks of a policy.
func (t *Trier) askServer(ctx context.Context, c *Check, d *Document) error {
	if t.admit == nil {
		return nil
	}
	kept, err := t.admit(ctx, d.Policy)
	switch {
	case apierrors.IsForbidden(err):
		c.Notes = append(c.Notes, "You may not write placement policies, so that the API server has not checked it against its schema")
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		c.Problems = append(c.Problems, "The API server refuses it: "+err.Error())
		c.Faults = append(c.Faults, d.refused(err)...)
	case err != nil:
		return fmt.Errorf("check placement policy %s: %w", d.Policy.Name, err)
	default:
		c.Policy = kept
	}
	return nil
}

// refused returns what the API server says of a policy, field by field.
func (d *Document) refused(err error) (all apiv1.FaultsError) {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			all = append(all, d.fault(cause.Field, cause.Message))
		}
	}
	if len(all) == 0 {
		all = apiv1.FaultsError{{Says: "the API server refuses it: " + err.Error()}}
	}
	return all[:min(len(all), maxFaults)]
}

// inExpression finds the place in an error of CEL.
var inExpression = regexp.MustCompile(`<input>:(\d+):(\d+): `)

// ofRules returns where an error of the rules is: they name what it is about.
func (d *Document) ofRules(err error) apiv1.Fault {
	text := err.Error()
	says, _, _ := strings.Cut(text, "\n") // CEL draws the place below.
	spec := &d.Policy.Spec
	for i := range spec.Filters {
		if filter := string(spec.Filters[i]); strings.HasPrefix(text, "filter "+strconv.Quote(filter)) {
			return d.ofExpression(fmt.Sprintf("spec.filters[%d]", i), says)
		}
	}
	for name := range spec.Weights {
		if strings.HasPrefix(text, "the weight of "+name+" ") {
			return d.fault("spec.weights["+name+"]", says)
		}
	}
	for _, field := range []string{"appliesTo.scope", "appliesTo.namespaces.selector"} {
		if strings.HasPrefix(text, field) {
			return d.fault("spec."+field, says)
		}
	}
	return d.fault("", says)
}

// ofExpression returns where an error in an expression is, as far as the text has it as it is.
func (d *Document) ofExpression(field, says string) apiv1.Fault {
	fault := d.fault(field, says)
	_, value := d.find(field)
	found := inExpression.FindStringSubmatchIndex(says)
	if value == nil || found == nil {
		return fault
	}
	line, _ := strconv.Atoi(says[found[2]:found[3]]) // They are digits.
	column, _ := strconv.Atoi(says[found[4]:found[5]])
	fault.Says = says[:found[0]] + says[found[1]:]
	switch {
	case value.Style&(yamlv3.LiteralStyle|yamlv3.FoldedStyle) != 0:
		fault.Line, fault.Column = d.before+value.Line+line, 0
	case strings.ContainsAny(value.Value, "\n\"'\\"):
	case value.Style&(yamlv3.SingleQuotedStyle|yamlv3.DoubleQuotedStyle) != 0:
		fault.Column += column
	default:
		fault.Column += column - 1
	}
	return fault
}
