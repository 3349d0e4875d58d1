// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/desk"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
	"github.com/capacitorset/liqo-broker/pkg/uiserver"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/trading"
)

// maxOrder bounds what is read of a request about trade, in bytes.
const maxOrder = 16 << 10

// ordered is how many plans are told that an order would buy.
const ordered = 5

// errAsked is about what somebody has asked for.
var errAsked = errors.New("wrong")

// askedError is one about a field.
type askedError struct{ text string }

func (e askedError) Error() string        { return e.text }
func (e askedError) Is(target error) bool { return target == errAsked }

// in returns an error about a field of what was asked; nil for nil.
func in(field string, err error) error {
	if err == nil {
		return nil
	}
	return askedError{field + ": " + err.Error()}
}

// read reads what somebody asks about trade; false if the request was refused.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := decode(w, r, maxOrder, into); err != nil {
		uiserver.Refuse(w, http.StatusBadRequest, "this is not the JSON that is needed: "+sheet.Sentence(err.Error()))
		return false
	}
	return true
}

// refuseOrder says what is wrong with what was asked, or why it was not done.
func refuseOrder(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, errAsked), errors.Is(err, desk.ErrUnclear), errors.Is(err, desk.ErrOnlyBought), errors.Is(err, desk.ErrOnlySold):
		uiserver.Refuse(w, http.StatusUnprocessableEntity, sheet.Sentence(err.Error()))
	default:
		refuse(w, err)
	}
}

// needOf reads what somebody needs. The error names the field.
func needOf(n *tradev1.Need) (offer.Filter, error) {
	filter := offer.Filter{Regions: n.Regions, Architectures: n.Architectures, Parties: n.Sellers, Expression: n.Expression}
	resources, err := resourcesOf(n.Resources)
	if err != nil {
		return filter, err
	}
	filter.Resources = resources
	if n.Duration != "" {
		duration, err := time.ParseDuration(n.Duration)
		if err == nil && duration < time.Minute {
			err = errors.New("it is at least 1m")
		}
		if err != nil {
			return filter, in("duration", err)
		}
		filter.Duration = offer.Duration(duration)
	}
	if n.MaxPrice != "" {
		price, err := show.ParsePrice(n.MaxPrice)
		if err != nil {
			return filter, in("maxPrice", err)
		}
		filter.MaxPrice = &price
	}
	return filter, nil
}

func resourcesOf(of tradev1.Quantities) (offer.Resources, error) {
	needed := offer.Resources{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] == "" {
			continue
		}
		quantity, err := offer.ParseQuantity(of[name])
		if err == nil {
			err = offer.Resources{name: quantity}.Check()
		}
		if err != nil {
			return nil, in(sheet.Sentence(name), err)
		}
		needed[name] = quantity
	}
	return needed, nil
}

// catalog returns what is for sale, if the person may see that.
func (a *Answers) catalog(ctx context.Context, now time.Time) (*desk.Catalog, error) {
	s, err := a.sighting(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.kinds, trading.Market) {
		return nil, askedError{"you may not see what is for sale"}
	}
	catalog, _, err := s.trade.Catalog(ctx, now)
	return catalog, err
}

// find says what fits a need.
func (a *Answers) find(w http.ResponseWriter, r *http.Request) {
	var need tradev1.Need
	if !read(w, r, &need) {
		return
	}
	filter, err := needOf(&need)
	if err != nil {
		refuseOrder(w, err)
		return
	}
	matcher, err := filter.Compile()
	if err != nil {
		refuseOrder(w, askedError{err.Error()})
		return
	}
	now := time.Now()
	catalog, err := a.catalog(r.Context(), now)
	if err != nil {
		refuseOrder(w, err)
		return
	}
	plans, more := trading.PlansOf(catalog.Find(matcher, now), trading.MaxListed, time.Duration(filter.Duration))
	uiserver.Answer(w, tradev1.Found{Plans: plans, More: more, LeftOut: catalog.LeftOut})
}

// orderOf reads an order. The error names the field.
func orderOf(catalog *desk.Catalog, asked *tradev1.Order) (*desk.Order, error) {
	need, err := needOf(&asked.Need)
	switch {
	case err != nil:
		return nil, err
	case asked.Name == "":
		return nil, askedError{"name: it is needed: it is how you end what you buy"}
	case need.Duration == 0:
		return nil, askedError{"duration: it is needed"}
	}
	order := &desk.Order{Name: asked.Name, Need: need, Renew: asked.Renew}
	if asked.Reference != "" {
		plan, err := catalog.Reference(asked.Reference)
		if err != nil {
			return nil, in("reference", err)
		}
		order.Plan = &plan
	} else {
		for _, name := range []string{"cpu", "memory", "pods"} {
			if _, ok := need.Resources[name]; !ok {
				return nil, askedError{name + ": it is needed, unless a plan is named"}
			}
		}
	}
	if _, err := need.Compile(); err != nil {
		return nil, askedError{err.Error()}
	}
	if asked.MaxTotal != "" {
		if order.MaxTotal, err = desk.ParseMoney(asked.MaxTotal); err != nil {
			return nil, in("maxTotal", err)
		}
	}
	return order, nil
}

// order creates a Purchase or a CapacityRequest, or tries that.
func (a *Answers) order(w http.ResponseWriter, r *http.Request) {
	var asked tradev1.Order
	dry, ok := a.mayChange(w, r)
	if !ok || !read(w, r, &asked) {
		return
	}
	now := time.Now()
	catalog, err := a.catalog(r.Context(), now)
	if err != nil {
		refuseOrder(w, err)
		return
	}
	order, err := orderOf(catalog, &asked)
	if err != nil {
		refuseOrder(w, err)
		return
	}
	would, err := catalog.Would(order, now)
	if err != nil {
		refuseOrder(w, askedError{err.Error()})
		return
	}
	create := func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, order.Object(), client.FieldOwner(owner))
	}
	if err := a.change(w, r, dry, create); err != nil {
		refuseOrder(w, fmt.Errorf("create %s %s: %w", order.Kind(), order.Name, err))
		return
	}
	plans, _ := trading.PlansOf(would, ordered, time.Duration(order.Need.Duration))
	uiserver.Answer(w, tradev1.Ordered{Kind: order.Kind(), Name: order.Name, Would: plans})
}

// done is the answer to what was done, or would be.
type done struct {
	Done string `json:"done"`
}

// decide does something with a contract, or tries it. What somebody else wants of it meanwhile, nobody overwrites.
func (a *Answers) decide(w http.ResponseWriter, r *http.Request) {
	var deed tradev1.Deed
	dry, ok := a.mayChange(w, r)
	if !ok || !read(w, r, &deed) {
		return
	}
	c, err := a.contract(r.Context(), r.PathValue("side"), r.PathValue("name"))
	if err != nil {
		refuseOrder(w, err)
		return
	}
	if version := trading.VersionOf(c.Object()); deed.Version != version {
		uiserver.Refuse(w, http.StatusConflict, "somebody has changed the contract meanwhile: look at it again")
		return
	}
	said, err := do(c, r.PathValue("deed"), &deed)
	if err != nil {
		refuseOrder(w, err)
		return
	}
	update := func(ctx context.Context, to client.Client) error {
		return to.Update(ctx, c.Object(), client.FieldOwner(owner))
	}
	if err := a.change(w, r, dry, update); err != nil {
		refuseOrder(w, fmt.Errorf("change contract %s: %w", c.Name, err))
		return
	}
	uiserver.Answer(w, done{said})
}

// contract reads a contract as it is now.
func (a *Answers) contract(ctx context.Context, side, name string) (*desk.Contract, error) {
	switch side {
	case "buys":
		p := &connectorv1alpha1.Purchase{}
		if err := a.client.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
			return nil, fmt.Errorf("get purchase: %w", err)
		}
		return new(desk.Bought(p)), nil
	case "sells":
		s := &connectorv1alpha1.Sale{}
		if err := a.client.Get(ctx, client.ObjectKey{Name: name}, s); err != nil {
			return nil, fmt.Errorf("get sale: %w", err)
		}
		return new(desk.Sold(s)), nil
	}
	return nil, askedError{"a contract buys or sells"}
}

// do changes the object of a contract, and says what that is.
func do(c *desk.Contract, deed string, d *tradev1.Deed) (said string, err error) {
	switch deed {
	case trading.End:
		c.End(d.Reason)
		return "is being ended", nil
	case trading.Resize:
		wanted, err := resourcesOf(d.Resources)
		if err != nil {
			return "", err
		}
		if len(wanted) == 0 && d.Plan == "" {
			return "", askedError{"resources: they are needed, or another plan"}
		}
		return "asks for other terms", c.Resize(wanted, d.Plan)
	case trading.Renew:
		if d.Until == nil {
			return "", askedError{"until: it is needed"}
		}
		return "asks for a later end", c.Renew(*d.Until)
	case trading.Approve, trading.Refuse:
		// Whoever decides says about what: a buyer can ask for something else at any time.
		if d.Terms == 0 {
			return "", askedError{"terms: their number is needed"}
		}
		if deed == trading.Approve {
			return "is approved", c.Decide(connectorv1alpha1.DecisionApprove, "", d.Terms)
		}
		return "is refused", c.Decide(connectorv1alpha1.DecisionRefuse, d.Reason, d.Terms)
	case trading.Suspend:
		return "is suspended", c.Suspend(true, d.Reason)
	case trading.Resume:
		return "is resumed", c.Suspend(false, "")
	}
	return "", askedError{fmt.Sprintf("there is no deed %.20q", deed)}
}

// sell opens or closes the sale of an offer.
func (a *Answers) sell(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Sale string `json:"sale"`
	}
	dry, ok := a.mayChange(w, r)
	if !ok || !read(w, r, &asked) {
		return
	}
	if asked.Sale != string(connectorv1alpha1.SaleOpen) && asked.Sale != string(connectorv1alpha1.SaleClosed) {
		uiserver.Refuse(w, http.StatusUnprocessableEntity, "sale is Open or Closed")
		return
	}
	o := &connectorv1alpha1.Offer{}
	o.Name = r.PathValue("name")
	if err := a.set(w, r, dry, o, "sale", asked.Sale, client.FieldOwner(owner)); err != nil {
		refuse(w, fmt.Errorf("set the sale of offer %s: %w", o.Name, err))
		return
	}
	uiserver.Answer(w, asked)
}

// withdraw deletes a CapacityRequest: its Purchase is ended.
func (a *Answers) withdraw(w http.ResponseWriter, r *http.Request) {
	dry, ok := a.mayChange(w, r)
	if !ok {
		return
	}
	o := &connectorv1alpha1.CapacityRequest{}
	o.Name = r.PathValue("name")
	if err := a.change(w, r, dry, func(ctx context.Context, c client.Client) error { return c.Delete(ctx, o) }); err != nil {
		refuse(w, fmt.Errorf("delete capacity request: %w", err))
		return
	}
	uiserver.Answer(w, done{"is not needed any more"})
}
