// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/journal"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// Flavor is a plan of an offer, in the form of REAR (fluidos-project/REAR-data-models@da509a3).
type Flavor struct {
	FlavorID     string      `doc:"The party, the offer and the plan."                    json:"flavorId"`
	ProviderID   string      `doc:"The party's ID."                                       json:"providerId"`
	Timestamp    time.Time   `doc:"When the offer was made."                              json:"timestamp"`
	Type         FlavorType  `json:"type"`
	Price        FlavorPrice `doc:"For all that the flavor has."                          json:"price"`
	Owner        FlavorOwner `json:"owner"`
	Availability bool        `doc:"Whether it can be bought now, and the party is alive." json:"availability"`
}

// FlavorType is what a flavor is: a slice of a cluster.
type FlavorType struct {
	Name string  `enum:"k8slice" json:"name"`
	Data K8Slice `json:"data"`
}

// K8Slice is a slice of a cluster.
type K8Slice struct {
	Characteristics K8SliceHas       `json:"characteristics"`
	Properties      map[string]any   `doc:"Always empty: the offer has properties of other kinds." json:"properties"`
	Policies        *K8SlicePolicies `doc:"Missing if it is sold as a whole."                      json:"policies,omitempty"`
}

// K8SliceHas is what a slice has at most, as quantities of Kubernetes.
type K8SliceHas struct {
	Architecture string `doc:"Several are separated by commas." json:"architecture"`
	CPU          string `json:"cpu"`
	Memory       string `json:"memory"`
	Pods         string `json:"pods"`
	Storage      string `doc:"That is ephemeral-storage."       json:"storage,omitempty"`
}

// K8SlicePolicies is in which parts a slice is sold.
type K8SlicePolicies struct {
	Partitionability Partitionability `json:"partitionability"`
}

// Partitionability is the least that can be bought, and in which steps more.
type Partitionability struct {
	CPUMin     string `json:"cpuMin"`
	CPUStep    string `json:"cpuStep"`
	MemoryMin  string `json:"memoryMin"`
	MemoryStep string `json:"memoryStep"`
	PodsMin    string `json:"podsMin"`
	PodsStep   string `json:"podsStep"`
}

// FlavorPrice is a price.
type FlavorPrice struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Period   string `enum:"minute,hour,day,week,month,year" json:"period"`
}

// FlavorOwner is who sells.
type FlavorOwner struct {
	Domain string            `doc:"The party's name."                                      json:"domain"`
	NodeID string            `doc:"The party's ID."                                        json:"nodeId"`
	IP     string            `doc:"Where the party's connector negotiates, with its port." json:"ip"`
	More   map[string]string `doc:"The endpoint of the party's connector, as a URL."       json:"additionalInformation"`
}

// flavorsInput is the selector of REAR, as far as the registry has what it asks for. An amount is matched, or is in a range.
type flavorsInput struct {
	rest.Paging

	Architecture string `doc:"Such as amd64."    maxLength:"64" query:"architecture"`
	CPU          string `doc:"Exactly so much."  maxLength:"64" query:"cpu"`
	CPUMin       string `doc:"At least so much." maxLength:"64" query:"cpu[min]"`
	CPUMax       string `doc:"At most so much."  maxLength:"64" query:"cpu[max]"`
	Memory       string `doc:"Exactly so much."  maxLength:"64" query:"memory"`
	MemoryMin    string `doc:"At least so much." maxLength:"64" query:"memory[min]"`
	MemoryMax    string `doc:"At most so much."  maxLength:"64" query:"memory[max]"`
	Pods         string `doc:"Exactly so many."  maxLength:"64" query:"pods"`
	PodsMin      string `doc:"At least so many." maxLength:"64" query:"pods[min]"`
	PodsMax      string `doc:"At most so many."  maxLength:"64" query:"pods[max]"`
	Storage      string `doc:"Exactly so much."  maxLength:"64" query:"storage"`
	StorageMin   string `doc:"At least so much." maxLength:"64" query:"storage[min]"`
	StorageMax   string `doc:"At most so much."  maxLength:"64" query:"storage[max]"`
}

// flavorsListed is the answer with flavors.
type flavorsListed struct {
	ETag string `header:"ETag"`
	Link string `doc:"Where the next flavors are, as the relation next (RFC 8288); missing if there are none." header:"Link"`
	Body []Flavor
}

type reservationInput struct {
	Body struct {
		_ struct{} `additionalProperties:"true"` // Who buys and how much is for the seller: it is not read.

		FlavorID string `doc:"That of a flavor that was listed." json:"flavorID" maxLength:"256" minLength:"1"`
	}
}

type purchaseInput struct {
	Transaction string `doc:"The seller's: a registry gives none. The ID of a flavor stands for one." maxLength:"256" minLength:"1" path:"transaction"`
}

// rear registers the three mandatory calls of REAR (fluidos-project/REAR@fe2764f, version 2.0.0 of its API).
func (s *Server) rear() {
	list := s.listing("listFlavors", registryv1.PathREARFlavors, "List what is offered in the form of REAR: LIST_FLAVORS")
	list.Description += " Each plan of an offer is a flavor. A page is of as many offers as the parameter limit says."
	rest.Register(s.api, list, s.listFlavors)
	reserve := s.operation("reserveFlavor", http.MethodPost, "", reads, "Learn who sells a flavor: RESERVE_FLAVOR")
	reserve.Path = registryv1.PathREARReservations
	reserve.Description += " It is always refused: a registry never trades. The problem, and the header Link with the relation service, " +
		"name the endpoint at which the seller negotiates."
	reserve.Errors = append(reserve.Errors, http.StatusNotFound)
	rest.Register(s.api, reserve, func(_ context.Context, in *reservationInput) (*struct{}, error) {
		return nil, s.neverTrades("body.flavorID", in.Body.FlavorID)
	})
	purchase := s.operation("purchaseFlavor", http.MethodPost, "", reads, "Learn who sells a flavor: PURCHASE_FLAVOR")
	purchase.Path = registryv1.PathREARPurchase
	purchase.Description += " It is always refused, as a reservation is. Nothing of a body is read: credentials are for the seller alone."
	purchase.Errors = append(purchase.Errors, http.StatusNotFound)
	rest.Register(s.api, purchase, func(_ context.Context, in *purchaseInput) (*struct{}, error) {
		return nil, s.neverTrades("path.transaction", in.Transaction)
	})
}

// neverTrades refuses to trade, and names who does.
func (s *Server) neverTrades(location, flavor string) error {
	id, sale, _ := strings.Cut(flavor, "_")
	name, planID, _ := strings.Cut(sale, "_")
	view := s.journal.View()
	owner, sold := view.Get(offer.Key{Party: id}), view.Get(offer.Key{Party: id, Offer: name})
	if owner != nil && owner.Party != nil && sold != nil && sold.Offer != nil {
		if _, ok := sold.Offer.Plan(planID); ok {
			return tradesItself(owner.Party)
		}
	}
	return rest.Wrong(http.StatusNotFound, location, errors.New(messageNoFlavor))
}

// tradesItself refuses to trade for a seller.
func tradesItself(seller *registryv1.Party) error {
	if seller.Endpoint == "" {
		return rest.Refusal(http.StatusForbidden, fmt.Sprintf(messageNoEndpoint, seller.ID))
	}
	detail := fmt.Sprintf(messageElsewhere, seller.ID, seller.Endpoint)
	if strings.ContainsAny(seller.Endpoint, `<>"`) {
		return rest.Refusal(http.StatusForbidden, detail) // It has announced what would be more than one link.
	}
	return rest.Refusal(http.StatusForbidden, detail, "Link", "<"+seller.Endpoint+`>; rel="service"`)
}

// listFlavors answers with the flavors of a page of offers.
func (s *Server) listFlavors(ctx context.Context, in *flavorsInput) (*flavorsListed, error) {
	wanted, text, err := in.selector()
	if err != nil {
		return nil, err
	}
	view := s.journal.View()
	flavors := func(e *journal.Entry) []Flavor {
		owner := view.Get(offer.Key{Party: e.Key.Party})
		if e.Offer == nil || owner == nil || owner.Party == nil {
			return nil
		}
		return flavorsOf(owner.Party, &e.Offer.Offer, wanted)
	}
	page, err := pageOf(ctx, s, in.Paging, request[[]Flavor]{
		view: view, filters: text,
		keep: func(e *journal.Entry) (bool, int) { return len(flavors(e)) > 0, 0 },
		show: func(e *journal.Entry) ([]Flavor, int, error) {
			all, size := flavors(e), 0
			for i := range all {
				size += all[i].size()
			}
			return all, size, nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &flavorsListed{
		ETag: page.ETag, Body: slices.Concat([]Flavor{}, slices.Concat(page.Body.Items...)),
		Link: nextPage(registryv1.PathREARFlavors, in.values(), in.Paging, page.Body.Continue),
	}, nil
}

// nextPage returns the header Link with the relation next; empty if there is no such page.
func nextPage(path string, asked url.Values, in rest.Paging, token string) string {
	if token == "" {
		return ""
	}
	asked.Set("limit", fmt.Sprint(in.Limit))
	asked.Set("continue", token)
	return "<" + path + "?" + asked.Encode() + `>; rel="next"`
}

// size is about how many bytes a flavor has as text. Its numbers and names of fields are less than a kilobyte.
func (f *Flavor) size() int {
	return 1<<10 + len(f.FlavorID) + len(f.Type.Data.Characteristics.Architecture) + len(f.Owner.Domain) + len(f.Owner.IP) +
		len(f.Owner.More["endpoint"])
}

// values returns the selector as it was asked for.
func (f *flavorsInput) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{
		"architecture": f.Architecture, "cpu": f.CPU, "cpu[min]": f.CPUMin, "cpu[max]": f.CPUMax, "memory": f.Memory, "memory[min]": f.MemoryMin,
		"memory[max]": f.MemoryMax, "pods": f.Pods, "pods[min]": f.PodsMin, "pods[max]": f.PodsMax, "storage": f.Storage,
		"storage[min]": f.StorageMin, "storage[max]": f.StorageMax,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// rearResources are the resources of which REAR has characteristics, by their names in its selector.
func rearResources() map[string]string {
	return map[string]string{"cpu": "cpu", "memory": "memory", "pods": "pods", "storage": "ephemeral-storage"}
}

// selector returns what reports whether a plan passes, and the selector as text.
func (f *flavorsInput) selector() (func(*offer.Offer, offer.Resources) bool, string, error) {
	given := f.values()
	type bound struct {
		resource string
		wanted   offer.Quantity
		passes   func(int) bool // By how the amount compares with what is wanted.
	}
	var bounds []bound
	for name, resource := range rearResources() {
		for suffix, passes := range map[string]func(int) bool{
			"": func(c int) bool { return c == 0 }, "[min]": func(c int) bool { return c >= 0 }, "[max]": func(c int) bool { return c <= 0 },
		} {
			text := given.Get(name + suffix)
			if text == "" {
				continue
			}
			wanted, err := offer.ParseQuantity(text)
			if err != nil {
				return nil, "", rest.Wrong(http.StatusUnprocessableEntity, "query."+name+suffix, err)
			}
			bounds = append(bounds, bound{resource, wanted, passes})
		}
	}
	return func(o *offer.Offer, has offer.Resources) bool {
		return (f.Architecture == "" || slices.Contains(o.Architectures, f.Architecture)) &&
			!slices.ContainsFunc(bounds, func(b bound) bool { return !b.passes(has[b.resource].Compare(b.wanted)) })
	}, "flavors?" + given.Encode(), nil
}

// flavorsOf returns the plans of an offer that are wanted, as flavors.
func flavorsOf(owner *registryv1.Party, o *offer.Offer, wanted func(*offer.Offer, offer.Resources) bool) []Flavor {
	var flavors []Flavor
	for i := range o.Plans {
		plan := &o.Plans[i]
		has, slice := plan.Resources, K8Slice{Properties: map[string]any{}}
		if plan.Range != nil {
			has = plan.Range.Max
			slice.Policies = &K8SlicePolicies{partsOf(plan.Range)}
		}
		price, err := plan.Cost(has)
		if err != nil || !wanted(o, has) {
			continue // What cannot be bought as a whole has no price in this form.
		}
		slice.Characteristics = K8SliceHas{
			Architecture: strings.Join(o.Architectures, ","), CPU: has["cpu"].String(), Memory: has["memory"].String(), Pods: has["pods"].String(),
		}
		if storage, ok := has["ephemeral-storage"]; ok {
			slice.Characteristics.Storage = storage.String()
		}
		f := Flavor{
			FlavorID: owner.ID + "_" + o.ID + "_" + plan.ID, ProviderID: owner.ID, Timestamp: o.IssuedAt,
			Type:  FlavorType{Name: "k8slice", Data: slice},
			Price: FlavorPrice{Amount: price.Amount.String(), Currency: price.Currency, Period: periodV0(price.Period)},
			Owner: ownerOf(owner), Availability: owner.Alive && plan.Available > 0,
		}
		flavors = append(flavors, f)
	}
	return flavors
}

func partsOf(r *offer.Range) Partitionability {
	return Partitionability{
		CPUMin: r.Min["cpu"].String(), CPUStep: r.Step["cpu"].String(), MemoryMin: r.Min["memory"].String(),
		MemoryStep: r.Step["memory"].String(), PodsMin: r.Min["pods"].String(), PodsStep: r.Step["pods"].String(),
	}
}

// ownerOf returns who sells. The endpoint was checked when it was announced.
func ownerOf(p *registryv1.Party) FlavorOwner {
	owner := FlavorOwner{Domain: p.Name, NodeID: p.ID, More: map[string]string{}}
	if at, err := url.Parse(p.Endpoint); err == nil && p.Endpoint != "" {
		owner.IP, owner.More["endpoint"] = at.Host, p.Endpoint
	}
	return owner
}
