// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Bounds of an offer. Ten thousand of them must fit into the memory of a connector.
const (
	maxPlans         = 32
	maxResources     = 32
	maxProperties    = 64
	maxKPIs          = 32
	maxArchitectures = 16
	// maxString is the length of a text in bytes.
	maxString = 1 << 10
	// maxStock is how many contracts of one plan there can be.
	maxStock = 1_000_000
	// maxRevision is the largest whole number that every reader of JSON has exactly.
	maxRevision = 1<<53 - 1
	// maxValidity is how long an offer can be valid: what was signed once can be shown again for as long.
	maxValidity = 366 * day
	// maxSkew is how far ahead the clock of a seller may be.
	maxSkew = 5 * time.Minute
)

// needed are the resources without which nothing runs on a node: Liqo's virtual node is not ready
// without cpu and memory, and the scheduler places no pod on a node without pods.
var needed = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// Forms of texts.
var (
	word     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$`)
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
	// secret are credentials that got into a text: a user in a URL, or a key.
	secret = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s/?#]*@|-----BEGIN [A-Z ]*PRIVATE KEY`)
)

// check refuses an offer that is never valid. The error names the first field that is wrong.
func (o Offer) check() error {
	return first(
		// Who sells what, and for how long.
		In("party", checkParty(o.Party)),
		In("id", checkLabel(o.ID)),
		In("revision", checkNumber(o.Revision, 1, maxRevision)),
		In("issuedAt", checkTime(o.IssuedAt)),
		In("validUntil", checkTime(o.ValidUntil)),
		o.checkValidity(),
		In("kind", checkKind(o.Kind)),
		// What it says of itself.
		In("name", required(o.Name)),
		In("name", checkText(o.Name, "")),
		In("description", checkText(o.Description, "\n")),
		In("type", checkWord(o.Type)),
		In("region", checkWord(o.Region)),
		In("zone", checkWord(o.Zone)),
		In("architectures", checkArchitectures(o.Architectures)),
		In("properties", checkProperties(o.Properties)),
		In("labels", checkLabels(o.Labels)),
		// What can be bought, and what was measured.
		o.checkPlans(),
		o.checkKPIs(),
	)
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// In says in which field an error is, which becomes a FieldError; nil stays nil. A path that goes on begins with a point or a bracket.
func In(field string, err error) error {
	var deeper *FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &deeper):
		separator := "."
		if strings.HasPrefix(deeper.Field, "[") {
			separator = ""
		}
		return &FieldError{Field: field + separator + deeper.Field, Reason: deeper.Reason}
	default:
		return &FieldError{Field: field, Reason: err}
	}
}

// FieldError is what is wrong with a field of an offer or a filter. errors.As finds it in each error of this package that is about a field.
type FieldError struct {
	// Field is the path of the field in JSON, such as plans[0].price.amount.
	Field  string
	Reason error
}

// Error is the field and what is wrong with it.
func (e *FieldError) Error() string { return e.Field + ": " + e.Reason.Error() }

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Reason }

func (o Offer) checkValidity() error {
	switch length := o.ValidUntil.Sub(o.IssuedAt); {
	case length <= 0:
		return In("validUntil", errors.New("it is not after issuedAt"))
	case length > maxValidity:
		return In("validUntil", fmt.Errorf("it is more than %d days after issuedAt", maxValidity/day))
	default:
		return nil
	}
}

func (o Offer) checkPlans() error {
	if len(o.Plans) == 0 || len(o.Plans) > maxPlans {
		return In("plans", fmt.Errorf("there are %d, but must be from 1 to %d", len(o.Plans), maxPlans))
	}
	seen := make(map[string]bool, len(o.Plans))
	for i := range o.Plans {
		err := o.Plans[i].check()
		if err == nil && seen[o.Plans[i].ID] {
			err = In("id", fmt.Errorf("%q is there twice", o.Plans[i].ID))
		}
		if err != nil {
			return In(fmt.Sprintf("plans[%d]", i), err)
		}
		seen[o.Plans[i].ID] = true
	}
	return nil
}

func (o Offer) checkKPIs() error {
	if len(o.KPIs) > maxKPIs {
		return In("kpis", fmt.Errorf("there are %d, which is more than %d", len(o.KPIs), maxKPIs))
	}
	seen := make(map[string]bool, len(o.KPIs))
	for i, k := range o.KPIs {
		err := first(
			In("name", required(k.Name)),
			In("name", checkWord(k.Name)),
			In("value", checkFloat(k.Value)),
			In("unit", checkText(k.Unit, "")),
			In("measuredAt", checkTime(k.MeasuredAt)),
			In("measuredBy", o.checkMeasuredBy(k.MeasuredBy)),
			In("samples", checkNumber(k.Samples, 0, maxRevision)),
		)
		if err == nil && seen[k.Name] {
			err = In("name", fmt.Errorf("%q is there twice", k.Name))
		}
		if err != nil {
			return In(fmt.Sprintf("kpis[%d]", i), err)
		}
		seen[k.Name] = true
	}
	return nil
}

// checkMeasuredBy checks where a value comes from: its signature is that of the offer, and says nothing for anybody else.
func (o Offer) checkMeasuredBy(by string) error {
	if err := checkParty(by); err != nil {
		return err
	}
	if by != o.Party {
		return fmt.Errorf("%s has not signed it: who signs an offer tells what it has measured itself", by)
	}
	return nil
}

// Checks of plans.

func (p *Plan) check() error {
	return first(
		In("id", checkLabel(p.ID)),
		In("name", checkText(p.Name, "")),
		p.checkAmounts(),
		In("price", p.Price.Validate()),
		p.checkUnitPrices(),
		p.checkStock(),
		In("minDuration", checkDuration(p.MinDuration)),
		In("maxDuration", checkDuration(p.MaxDuration)),
		In("notice", checkDuration(p.Notice)),
		p.checkDurations(),
	)
}

func (p *Plan) checkAmounts() error {
	switch {
	case len(p.Resources) > 0 && p.Range != nil:
		return In("range", errors.New("a plan has resources or a range, and not both"))
	case p.Range != nil:
		return In("range", p.Range.check())
	default:
		return In("resources", first(checkResources(p.Resources), checkNeeded(p.Resources)))
	}
}

// check checks that the maximum is a whole number of steps above the minimum, so that the
// buyer can have both.
func (r *Range) check() error {
	err := first(
		In("min", first(checkResources(r.Min), checkNeeded(r.Min))),
		In("max", checkResources(r.Max)),
		In("step", checkResources(r.Step)),
	)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Max)) {
		key, least, most, step := fmt.Sprintf("[%q]", name), r.Min[name], r.Max[name], r.Step[name]
		switch {
		case most.milli < least.milli:
			return In("max", In(key, fmt.Errorf("%s is less than the minimum %s", most, least)))
		case step.milli == 0 && most.milli != least.milli:
			return In("step", In(key, errors.New("it is missing")))
		case step.milli != 0 && (most.milli-least.milli)%step.milli != 0:
			return In("max", In(key, fmt.Errorf("%s is not the minimum %s and a whole number of steps of %s", most, least, step)))
		}
	}
	return first(r.beside("min", r.Min), r.beside("step", r.Step))
}

// beside checks that the maximum has all resources of the minimum, or of the steps.
func (r *Range) beside(field string, list Resources) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if _, ok := r.Max[name]; !ok {
			return In("max", In(fmt.Sprintf("[%q]", name), fmt.Errorf("it is missing, while range.%s has it", field)))
		}
	}
	return nil
}

// Validate refuses what is no price, by a FieldError.
func (p Price) Validate() error {
	switch {
	case p.Amount.nano < 0:
		return In("amount", errors.New("it is negative"))
	case !currency.MatchString(p.Currency):
		return In("currency", fmt.Errorf("%.32q is not a code of ISO 4217 such as EUR", p.Currency))
	case p.Period.minutes() == 0:
		return In("period", fmt.Errorf("%.32q is not one of PT1M, PT1H, P1D, P1W, P1M and P1Y", p.Period))
	default:
		return nil
	}
}

// checkUnitPrices checks that each amount that a buyer can choose has an exact price.
func (p *Plan) checkUnitPrices() error {
	if len(p.UnitPrices) == 0 {
		return nil
	}
	if p.Range == nil {
		return In("unitPrices", errors.New("only a range has unit prices"))
	}
	for _, name := range slices.Sorted(maps.Keys(p.UnitPrices)) {
		field, price := fmt.Sprintf("unitPrices[%.64q]", name), p.UnitPrices[name]
		if _, ok := p.Range.Max[name]; !ok {
			return In(field, errors.New("the range does not have the resource"))
		}
		if price.Per.milli <= 0 {
			return In(field, In("per", errors.New("it is not positive")))
		}
		for _, amount := range []Quantity{p.Range.Min[name], p.Range.Step[name], p.Range.Max[name]} {
			if _, err := price.of(amount); err != nil {
				return In(field, fmt.Errorf("the price of %s %w", amount, err))
			}
		}
	}
	if _, err := p.cost(p.Range.Max); err != nil {
		return In("unitPrices", fmt.Errorf("the price of the maximum %w", err))
	}
	return nil
}

func (p *Plan) checkStock() error {
	if err := In("available", checkNumber(p.Available, 0, maxStock)); err != nil || p.Stock == nil {
		return err
	}
	if err := In("stock", checkNumber(*p.Stock, 0, maxStock)); err != nil {
		return err
	}
	if p.Available > *p.Stock {
		return In("available", fmt.Errorf("%d is more than the stock of %d", p.Available, *p.Stock))
	}
	return nil
}

func (p *Plan) checkDurations() error {
	if p.MaxDuration != 0 && p.MinDuration > p.MaxDuration {
		return In("maxDuration", fmt.Errorf("%s is less than the minimum %s", p.MaxDuration, p.MinDuration))
	}
	return nil
}

// Checks of resources.

// Check returns an error unless nodes can have the resources, by their names and amounts.
func (r Resources) Check() error { return checkResources(r) }

// checkResources checks names and amounts. Of cpu there can be parts; half a byte or half a pod
// is a typing error.
func checkResources(list Resources) error {
	if len(list) > maxResources {
		return fmt.Errorf("there are %d, which is more than %d", len(list), maxResources)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		key, quantity := fmt.Sprintf("[%.64q]", name), list[name]
		switch {
		case !isResource(name):
			return In(key, errors.New("it is not the name of a resource of Kubernetes, such as memory or nvidia.com/gpu"))
		case quantity.milli <= 0:
			return In(key, errors.New("it is not positive"))
		case quantity.milli > maxUnits*milli:
			return In(key, errTooLarge)
		case quantity.milli%milli != 0 && name != string(corev1.ResourceCPU):
			return In(key, fmt.Errorf("%s is not a whole number", quantity))
		}
	}
	return nil
}

func checkNeeded(list Resources) error {
	for _, name := range needed {
		if _, ok := list[string(name)]; !ok {
			return In(fmt.Sprintf("[%q]", name), errors.New("it is missing"))
		}
	}
	return nil
}

// isResource reports whether a node can have a resource. Names without a domain are Kubernetes' own: see
// https://kubernetes.io/docs/concepts/configuration/manage-resources-containers.
func isResource(name string) bool {
	switch {
	case len(validation.IsQualifiedName(name)) > 0:
		return false
	case strings.Contains(name, "/"):
		return true
	default:
		ephemeral := string(corev1.ResourceEphemeralStorage)
		return slices.Contains(needed[:], corev1.ResourceName(name)) || name == ephemeral ||
			strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
	}
}

// Checks of values.

// partyLength is how long the SHA-256 of a key is in base32.
const partyLength = 52

// checkParty checks the form of a party's ID. The last character has four bits that mean nothing and are zero.
func checkParty(id string) error {
	encoding := base32.StdEncoding.WithPadding(base32.NoPadding)
	digest, err := encoding.DecodeString(strings.ToUpper(id))
	if err != nil || len(id) != partyLength || strings.ToLower(encoding.EncodeToString(digest)) != id {
		return fmt.Errorf("%.60q is not the ID of a party: %d characters of lower-case base32", id, partyLength)
	}
	return nil
}

func checkLabel(id string) error {
	if len(validation.IsDNS1123Label(id)) > 0 {
		return fmt.Errorf("%.80q is not a DNS label: up to 63 of a-z, 0-9 and -", id)
	}
	return nil
}

func checkKind(kind Kind) error {
	if kind != Cluster && kind != Broker {
		return fmt.Errorf("%.32q is neither %s nor %s", kind, Cluster, Broker)
	}
	return nil
}

func checkNumber(n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%d is not from %d to %d", n, least, most)
	}
	return nil
}

func checkFloat(x float64) error {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("%g is not finite", x)
	}
	return nil
}

func checkTime(t time.Time) error {
	if year := t.UTC().Year(); year < 2000 || year > 9999 {
		return fmt.Errorf("the year %d is not from 2000 to 9999", year)
	}
	return nil
}

func checkDuration(d Duration) error {
	if length := time.Duration(d); length < 0 || length > maxDuration || length%time.Second != 0 {
		return fmt.Errorf("%s is not a whole number of seconds, up to a hundred years", length)
	}
	return nil
}

func required(text string) error {
	if text == "" {
		return errors.New("it is missing")
	}
	return nil
}

func checkWord(text string) error {
	if text != "" && !word.MatchString(text) {
		return fmt.Errorf("%.80q is not a word: up to 63 letters and digits, with . _ / - between them", text)
	}
	return nil
}

// checkText refuses what a terminal or a browser would not show as it is, except what is allowed.
func checkText(text, allowed string) error {
	hidden := func(r rune) bool {
		return !strings.ContainsRune(allowed, r) &&
			(unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == utf8.RuneError)
	}
	switch {
	case len(text) > maxString:
		return fmt.Errorf("it has %d bytes, which is more than %d", len(text), maxString)
	case strings.ContainsFunc(text, hidden):
		return errors.New("it has characters that are not shown")
	case secret.MatchString(text):
		return errors.New("it has a credential, which everybody would see")
	default:
		return nil
	}
}

func checkArchitectures(list []string) error {
	if len(list) > maxArchitectures {
		return fmt.Errorf("there are %d, which is more than %d", len(list), maxArchitectures)
	}
	for i, name := range list {
		err := first(required(name), checkWord(name))
		if err == nil && slices.Contains(list[:i], name) {
			err = fmt.Errorf("%q is there twice", name)
		}
		if err != nil {
			return In(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

func checkProperties(properties map[string]string) error {
	return first(eachOf(properties, func(key, value string) error {
		return first(required(key), checkWord(key), checkText(value, "\n"), checkReserved(key, value))
	}), checkPairs(properties))
}

func checkLabels(labels map[string]string) error {
	return eachOf(labels, func(key, value string) error {
		if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
			return fmt.Errorf("it is not a label of Kubernetes: %s", wrong[0])
		}
		return nil
	})
}

func eachOf(texts map[string]string, check func(key, value string) error) error {
	if len(texts) > maxProperties {
		return fmt.Errorf("there are %d, which is more than %d", len(texts), maxProperties)
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if err := In(fmt.Sprintf("[%.64q]", key), check(key, texts[key])); err != nil {
			return err
		}
	}
	return nil
}
