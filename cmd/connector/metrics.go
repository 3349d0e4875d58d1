// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

const (
	// scrapeTimeout bounds the reads for one scrape, which come from the cache.
	scrapeTimeout = time.Second
	// overdue is how long a contract may be on its way from its order to its use before somebody should look. Approval by people does not
	// count.
	overdue = 15 * time.Minute
)

// The sides of contracts, as the values of the label.
const (
	sideBuyer  = "buyer"
	sideSeller = "seller"
)

// connectorMetrics are the connector's own metrics, beside those of controller-runtime. They name no party: what strangers say is no label.
// Contracts and registries are read when they are asked for, so that what is gone leaves no series.
type connectorMetrics struct {
	reader                           client.Reader
	clock                            clock.PassiveClock
	bills                            *bills
	refused                          *prometheus.CounterVec
	contracts, waiting               *prometheus.Desc
	soldCPU, soldMemory              *prometheus.Desc
	soldPods, soldDevices            *prometheus.Desc
	registryFollowed, registryOffers *prometheus.Desc
	offersListed, offersUncovered    *prometheus.Desc
	planLeft                         *prometheus.Desc
	salesUncovered                   *prometheus.Desc
	hourly, month, asked             *prometheus.Desc
}

// newMetrics returns the metrics of what a cache knows.
func newMetrics(reader client.Reader, now clock.PassiveClock) *connectorMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("liqo_broker_connector_"+name, help, labels, nil)
	}
	m := &connectorMetrics{
		reader: reader, clock: now, bills: newBills(),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_broker_connector_requests_refused_total",
			Help: "Requests of buyers that were refused, by reason: of strangers, malformed, of unknown contracts, not in the contract's state, " +
				"with other terms, too many, of clusters that are not reached, or because the seller has failed.",
		}, []string{"reason"}),
		contracts: desc("contracts", "Contracts by side, as buyer or as seller, and by state.", "side", "state"),
		waiting: desc("contracts_overdue",
			"Contracts that were ordered more than 15 minutes ago and cannot be used yet, without those that wait for somebody's approval, by side.",
			"side"),
		soldCPU:          desc("sold_cpu_cores", "What contracts hold of what this cluster sells: cores."),
		soldMemory:       desc("sold_memory_bytes", "What contracts hold of what this cluster sells: memory in bytes."),
		soldPods:         desc("sold_pods", "What contracts hold of what this cluster sells: pods."),
		registryFollowed: desc("registry_followed", "1 if a registry is followed, 0 if it is not, by the name of the Registry.", "registry"),
		registryOffers:   desc("registry_offers", "Offers that a registry has shown, by the name of the Registry.", "registry"),
		offersListed:     desc("offers", "Offers of this cluster, by whether all registries list them: published is true or false.", "published"),
	}
	m.soldDevices = desc("sold_devices",
		"What contracts hold of what this cluster sells: devices that its Offers have, such as GPUs, by the name of the resource.", "resource")
	m.planLeft = desc("plan_left",
		"How many more contracts there could be of a plan that is for sale, by the name of the Offer and the ID of the plan.", "offer", "plan")
	m.offersUncovered = desc("offers_uncovered",
		"Offers of this cluster by which it has sold more than it has, or for longer than it has it, by the reason of their condition "+
			"Covered.", "reason")
	m.salesUncovered = desc("sales_uncovered",
		"Contracts by which this cluster has sold more than it has, or for longer than it has it, by the reason of their condition Covered.",
		"reason")
	m.hourly = desc("contract_price_per_hour",
		"What contracts cost in an hour as they are now, without those that are suspended, by side and currency.", "side", "currency")
	m.month = desc("contract_cost_month",
		"What is owed for contracts since the month has begun, in UTC, by side and currency.", "side", "currency")
	m.asked = desc("approval_wait_seconds", "For how long the sale waits that has waited for somebody's approval for longest; 0 if none does.")
	for _, reason := range negotiation.Refusals() {
		m.refused.WithLabelValues(reason)
	}
	return m
}

// register registers all metrics.
func (m *connectorMetrics) register(r prometheus.Registerer, certificate diagnostics.GetCertificate) error {
	for _, c := range []prometheus.Collector{
		diagnostics.BuildInfo("connector"), diagnostics.NewExpiry(map[string]diagnostics.GetCertificate{"metrics": certificate}), m.refused, m,
	} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	return nil
}

// Describe implements prometheus.Collector.
func (m *connectorMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		m.contracts, m.waiting, m.soldCPU, m.soldMemory, m.soldPods, m.soldDevices, m.registryFollowed, m.registryOffers, m.offersListed,
		m.planLeft, m.offersUncovered, m.salesUncovered, m.hourly, m.month, m.asked,
	} {
		descs <- desc
	}
}

// side counts the contracts of a side.
type side struct {
	states map[contract.State]int
	late   int
}

// newSide returns one without contracts.
func newSide() side {
	s := side{states: map[contract.State]int{}}
	for _, state := range contract.States() {
		if state != contract.None {
			s.states[state] = 0
		}
	}
	return s
}

// add counts a contract. A state that does not exist is that of an object that people have written, and is none.
func (s *side) add(state contract.State, created metav1.Time, now time.Time) {
	if _, is := s.states[state]; is {
		s.states[state]++
	}
	switch state { //nolint:exhaustive // The others are in use, over, or wait for people.
	case contract.None, contract.Reserved, contract.Signed, contract.Provisioning:
		if now.Sub(created.Time) > overdue {
			s.late++
		}
	}
}

// Collect implements prometheus.Collector.
func (m *connectorMetrics) Collect(values chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var sales connectorv1alpha1.SaleList
	var purchases connectorv1alpha1.PurchaseList
	var registries connectorv1alpha1.RegistryList
	var offers connectorv1alpha1.OfferList
	// All is read from the cache before anything is shown.
	for _, list := range []client.ObjectList{&sales, &purchases, &registries, &offers} {
		if err := m.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			values <- prometheus.NewInvalidMetric(m.contracts, fmt.Errorf("read what contracts there are: %w", err))
			return
		}
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		values <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	// Contracts, by the side on which this cluster is and by state, and how much is given away by those that are sold.
	now, sold := m.clock.Now(), corev1.ResourceList{}
	sides := map[string]side{sideBuyer: newSide(), sideSeller: newSide()}
	bought, selling := sides[sideBuyer], sides[sideSeller]
	for i := range purchases.Items {
		p := &purchases.Items[i]
		bought.add(contract.State(p.Status.State), p.CreationTimestamp, now)
	}
	for i := range sales.Items {
		s := &sales.Items[i]
		state := contract.State(s.Status.State)
		selling.add(state, s.CreationTimestamp, now)
		if _, is := selling.states[state]; is && state != contract.Proposed && !state.Final() {
			resources.Add(sold, s.Status.Resources)
		}
	}
	sides[sideBuyer], sides[sideSeller] = bought, selling
	m.collectMoney(gauge, now, purchases.Items, sales.Items)
	for name, counts := range sides {
		for state, count := range counts.states {
			gauge(m.contracts, float64(count), name, string(state))
		}
		gauge(m.waiting, float64(counts.late), name)
	}
	m.collectSold(gauge, sold, offers.Items)
	// How it stands with each registry.
	for i := range registries.Items {
		r := &registries.Items[i]
		followed := 0.0
		if meta.IsStatusConditionTrue(r.Status.Conditions, connectorv1alpha1.ConditionFollowing) {
			followed = 1
		}
		gauge(m.registryFollowed, followed, r.Name)
		gauge(m.registryOffers, float64(r.Status.Offers), r.Name)
	}
	m.collectOffers(gauge, offers.Items, sales.Items)
}

// collectSold shows what contracts hold. Devices are those of this cluster's own Offers, of which there are few; 0 of those that nobody has
// bought.
func (m *connectorMetrics) collectSold(
	gauge func(*prometheus.Desc, float64, ...string), sold corev1.ResourceList, offers []connectorv1alpha1.Offer,
) {
	gauge(m.soldCPU, sold.Cpu().AsApproximateFloat64())
	gauge(m.soldMemory, sold.Memory().AsApproximateFloat64())
	gauge(m.soldPods, sold.Pods().AsApproximateFloat64())
	offered := corev1.ResourceList{}
	for i := range offers {
		for _, plan := range offers[i].Spec.Plans {
			maps.Copy(offered, corev1.ResourceList(plan.Resources))
			if plan.Range != nil {
				maps.Copy(offered, corev1.ResourceList(plan.Range.Max))
			}
		}
	}
	for name := range offered {
		if resources.IsDevice(name) {
			devices := sold[name]
			gauge(m.soldDevices, devices.AsApproximateFloat64(), string(name))
		}
	}
}

// collectOffers shows which offers are listed, what is left of those that are for sale, and what of that which is sold by them this cluster
// lacks.
func (m *connectorMetrics) collectOffers(
	gauge func(*prometheus.Desc, float64, ...string), offers []connectorv1alpha1.Offer, sales []connectorv1alpha1.Sale,
) {
	published, offered, sold := 0, newUncovered(), newUncovered()
	for i := range offers {
		offered.note(offers[i].Status.Conditions)
		if meta.IsStatusConditionTrue(offers[i].Status.Conditions, connectorv1alpha1.ConditionPublished) {
			published++
		}
		if offers[i].Status.Signed == "" {
			continue
		}
		for _, plan := range offers[i].Status.Plans {
			gauge(m.planLeft, float64(plan.Available), offers[i].Name, string(plan.ID))
		}
	}
	gauge(m.offersListed, float64(published), "true")
	gauge(m.offersListed, float64(len(offers)-published), "false")
	for i := range sales {
		sold.note(sales[i].Status.Conditions)
	}
	for reason := range sold {
		gauge(m.offersUncovered, float64(offered[reason]), reason)
		gauge(m.salesUncovered, float64(sold[reason]), reason)
	}
}

// uncoveredBy counts what is not covered, by the reason.
type uncoveredBy map[string]int

// newUncovered returns one that has counted nothing.
func newUncovered() uncoveredBy {
	return uncoveredBy{connectorv1alpha1.ReasonOvercommitted: 0, connectorv1alpha1.ReasonUncovered: 0}
}

// note counts an object by its conditions.
func (u uncoveredBy) note(conditions []metav1.Condition) {
	covered := meta.FindStatusCondition(conditions, connectorv1alpha1.ConditionCovered)
	if covered != nil && covered.Status == metav1.ConditionFalse {
		u[covered.Reason]++
	}
}

// collectMoney shows what contracts cost, and who waits for people.
func (m *connectorMetrics) collectMoney(
	gauge func(*prometheus.Desc, float64, ...string), now time.Time, purchases []connectorv1alpha1.Purchase, sales []connectorv1alpha1.Sale,
) {
	costs := map[string]*money{sideBuyer: newMoney(), sideSeller: newMoney()}
	bought, sold := m.bills.running(now, purchases, sales)
	for _, of := range bought {
		costs[sideBuyer].add(of, now)
	}
	for _, of := range sold {
		costs[sideSeller].add(of, now)
	}
	longest := time.Duration(0)
	for i := range sales {
		if since, waits := waitsSince(&sales[i]); waits {
			longest = max(longest, now.Sub(since))
		}
	}
	gauge(m.asked, longest.Seconds())
	for name, cost := range costs {
		for currency, hourly := range cost.hourly {
			value, _ := hourly.Float64()
			gauge(m.hourly, value, name, currency)
		}
		for _, sum := range cost.month {
			gauge(m.month, sum.Cost.Float(), name, sum.Currency)
		}
	}
}
