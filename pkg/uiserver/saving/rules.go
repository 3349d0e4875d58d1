// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package saving

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/consuming"
)

// inTurn are the kinds in the order in which their things get pseudonyms: first those that clusters are called after.
var inTurn = []string{
	"providers", "consumers", "policies", "offers", "decisions", "workloads", "links", "flows", "advice", "status",
	"contracts", "requests", "ownoffers", "registries", "market", "activity",
}

// thing is what may be told of a kind: under which field an event has it, and what the parts of its key are.
type thing struct {
	field string
	key   []rule
	rule  rule
}

// The shapes of texts without names.
var (
	quantity = shaped(`^-?[0-9.]{1,32}([eE][+-]?[0-9]{1,3})?[A-Za-z]{0,2}$`)
	devices  = shaped(`^(hugepages-[0-9]+[KMG]i|(nvidia|amd|intel)\.com/[a-z]+)$`)
	resource = either(shaped(`^(cpu|memory|pods|storage|ephemeral-storage)$`), unnamed(devices))
	lasting  = shaped(`^[0-9.hmsu]{1,32}$`)
	period   = unnamed(shaped(`^(P[0-9A-Z]{1,16}|[0-9]{1,4}[mh])$`))
	currency = shaped(`^[A-Z]{3}$`)
	amounts  = by(resource, quantity)
	version  = shaped(`^[0-9A-Za-z.+-]{1,64}$`)
)

// ours are words that are the same for all, whatever clusters are called: they stay.
var ours = []string{
	"True", "False", "Unknown", "Ready", "Active", "Cordoned", "Drained", "Suspended", "Measured", "Declared", "Min", "Broker",
	"Prometheus", "Direct", "Cluster", "None", "Pending", "Established", "Ending", "Orchestrated", "Aggregated", "One", "PerProvider",
	"Default", "Consumers", "Namespaces", "OnRequest", "Up", "Down", "Accept", "Ask", "Deny", "direct", "relay", "Running", "Succeeded",
	"Failed", "Waiting", "Terminating", "Provider", "Consumer", "PlacementPolicy", "ProviderQuery", "Purchase", "Sale",
	"CapacityRequest", "Offer", "Registry", "catalog", "orchestrator", "aggregator", "broker", "consumer", "market", "buys", "sells",
	"end", "resize", "renew", "approve", "refuse", "suspend", "resume", "providers", "consumers", "offers", "policies", "decisions",
	"workloads", "links", "flows", "advice", "status", "activity", "contracts", "requests", "ownoffers", "registries",
}

// unit is of units that many use. People call those of queries as they want.
func unit(_ *hider, value any, _ map[string]any) any {
	text, is := value.(string)
	usual := []string{kpi.Milliseconds, kpi.Cores, kpi.GiB, kpi.Ratio, kpi.GramsPerKWh, kpi.Seconds, "%"}
	if is && (slices.Contains(usual, text) || perHour.MatchString(text)) {
		return text
	}
	return ""
}

// perHour is of prices.
var perHour = regexp.MustCompile(`^[A-Z]{3}/h$`)

// measures is of names of KPIs. People call those of queries as they want.
func measures(h *hider, value any, in map[string]any) any {
	text, is := value.(string)
	usual := []string{
		kpi.Availability1h, kpi.Availability24h, kpi.Availability30d, kpi.FreeCPU, kpi.FreeMemory, kpi.RoundTripTime, kpi.PriceCPU,
		kpi.PriceMemory, kpi.FailureRate, kpi.StartupMedian, kpi.StartupP90, kpi.Carbon, kpi.ConsumerRoundTripTime,
	}
	if is && slices.Contains(usual, text) {
		return text
	}
	return name("kpi")(h, value, in)
}

// places is of labels: those that say where a provider is.
func places(h *hider, value any, _ map[string]any) any {
	in, is := value.(map[string]any)
	if !is {
		return nil
	}
	out := map[string]any{}
	for _, label := range []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone"} {
		if alias := name(label[strings.Index(label, "/")+1:])(h, in[label], in); alias != nil {
			out[label] = alias
		}
	}
	return out
}

// about is of the name of what an activity is about.
func about(h *hider, value any, in map[string]any) any {
	switch in["kind"] {
	case "Provider":
		return id("provider")(h, value, in)
	case "Consumer":
		return id("consumer")(h, value, in)
	case "PlacementPolicy":
		return name("policy")(h, value, in)
	case "Purchase", "Sale":
		return name("contract")(h, value, in)
	case "CapacityRequest":
		return name("request")(h, value, in)
	case "Offer":
		return name("offer")(h, value, in)
	case "Registry":
		return name("registry")(h, value, in)
	}
	return name("object")(h, value, in)
}

// titled is of the title of an own offer.
func titled(h *hider, _ any, in map[string]any) any { return name("offer")(h, in["name"], in) }

// whoSees is what may be told of who has seen the page.
func whoSees(h *hider, value any, _ map[string]any) any {
	return object(map[string]rule{
		"consumes": number, "name": name("person"), "may": all(shaped(`^[a-z]+ [a-z]+$`)), "readOnly": number, "version": version,
		"broker": with("broker", nil), "cluster": with("broker", nil),
		"kinds": all(object(map[string]rule{"kind": word, "missing": all(shaped(`^[a-z]+ [a-z.]+$`))})),
	})(h, value, nil)
}

// things are the rules of all kinds. A message of a condition, and every other text that somebody else than the broker may have written,
// is left out.
var things = makeThings()

func makeThings() map[string]thing {
	provider, consumer := with("provider", nil), with("consumer", nil)
	conditions := all(object(map[string]rule{"type": word, "status": word, "reason": word, "since": moment}))
	link := object(map[string]rule{
		"from": with(clusters, nil), "to": with(clusters, nil), "kind": word, "connected": number, "roundTripSeconds": number, "measured": moment,
		"incoming": word, "outgoing": word,
	})
	group := object(map[string]rule{"total": number, "states": by(word, number)})
	// What a consumer has at home is of no other kind: its names are not known.
	findings, athome := object(map[string]rule{"problem": number, "what": found, "do": found}),
		object(map[string]rule{"problem": number, "what": always(leftOut), "do": always("")})
	status := func(finding rule) rule {
		return object(map[string]rule{
			"healthy": number, "modes": all(word), "offered": amounts, "used": amounts, "free": amounts, "more": number, "providers": group,
			"consumers": group, "policies": group, "queries": group, "decisions": object(map[string]rule{"total": number, "empty": number}),
			"brokers": all(with("broker", nil)), "next": all(finding),
		})
	}
	kinds := map[string]thing{
		"providers": {"provider", []rule{id("provider")}, with("provider", map[string]rule{
			"scheduling": word, "ready": number, "reason": word, "created": moment, "unreachableSince": moment, "conditions": conditions,
			"link": link, "labels": places,
			"capacity": object(map[string]rule{
				"overcommitPercent": number, "rule": word, "declared": amounts, "free": amounts, "largestPod": amounts, "measured": amounts,
				"offered": amounts, "used": amounts,
			}),
			"price": object(map[string]rule{"currency": currency, "cpu": quantity, "memory": quantity, "periodSeconds": number}),
			"kpis": all(object(map[string]rule{
				"name": measures, "unit": unit, "value": number, "source": word, "measured": moment, "expires": moment,
			})),
			"history": all(object(map[string]rule{
				"name": measures, "slotSeconds": number, "slots": number, "upSeconds": all(number), "lastSeconds": number,
			})),
		})},
		"consumers": {"consumer", []rule{id("consumer")}, with("consumer", map[string]rule{
			"mode": word, "nodes": word, "scheduling": word, "ready": number, "reason": word, "sharePercent": number, "created": moment,
			"offered": amounts, "used": amounts, "reserved": amounts, "limit": amounts, "conditions": conditions,
		})},
		"offers": {"offer", []rule{id("consumer")}, object(map[string]rule{
			"consumer": consumer, "offered": amounts, "granted": amounts, "used": amounts,
			"nodes": all(object(map[string]rule{"node": name("node"), "provider": id("provider"), "offered": amounts})),
		})},
		"policies": {"policy", []rule{name("policy")}, object(map[string]rule{
			"name": name("policy"), "scope": word, "priority": number, "decided": number, "created": moment, "maxProviders": number,
			"summary": chosen,
			"weights": by(measures, number), "conditions": conditions, "consumers": all(id("consumer")), "namespaces": all(name("namespace")),
		})},
		"decisions": {"decision", []rule{name("policy"), id("consumer")}, object(map[string]rule{
			"policy": name("policy"), "consumer": consumer, "complete": number,
			"better": all(with("provider", map[string]rule{"since": moment, "due": moment})),
			"scaling": object(map[string]rule{
				"unit": unit, "offloadAbove": number, "unoffloadBelow": number, "windowSeconds": number, "count": number, "min": number, "max": number,
				"groupBy": name("label"), "value": number, "direction": word, "since": moment, "measured": moment, "unknown": always("there is none"),
			}),
			"providers": all(with("provider", map[string]rule{
				"chosen": number, "score": number, "excluded": always("the reason is left out"),
				"terms": all(object(map[string]rule{
					"name": measures, "value": number, "unit": unit, "weight": number, "normalized": number, "points": number,
					"unknown": always("there is none"),
				})),
			})),
		})},
		"workloads": {"workload", []rule{id("consumer"), name("namespace"), name("pod")}, object(map[string]rule{
			"consumer": consumer, "provider": provider, "namespace": name("namespace"), "brokerNamespace": name("namespace"), "pod": name("pod"),
			"status": word, "ready": number, "path": word, "requests": amounts, "policy": name("policy"), "address": name("address"),
			"broker": with("broker", nil), "node": name("node"),
			"since": moment,
		})},
		"links": {"link", []rule{id(clusters), id(clusters)}, link},
		"flows": {"flow", []rule{id("consumer"), id("provider"), word}, object(map[string]rule{
			"broker": with("broker", nil), "consumer": consumer, "provider": provider, "path": word, "pods": number, "ready": number,
		})},
		"advice": {"advice", []rule{id("consumer")}, object(map[string]rule{
			"consumer": consumer, "done": number, "message": said, "more": number,
			"peers": all(object(map[string]rule{
				"provider": provider, "running": number, "connected": number, "reasons": all(said), "check": said, "policies": all(name("policy")),
			})),
		})},
		"status": {"status", []rule{word}, func(h *hider, value any, event map[string]any) any {
			if event["key"] == consuming.TheStatus {
				return status(athome)(h, value, event)
			}
			return status(findings)(h, value, event)
		}},
		"activity": {"activity", []rule{name("event")}, object(map[string]rule{
			"by": name("person"), "consumer": consumer, "provider": provider, "count": number, "first": moment, "kind": word,
			"message": always(""), "name": about, "reason": word, "time": moment, "warning": number,
		})},
	}
	maps.Copy(kinds, thingsOfTrade(conditions))
	return kinds
}

func thingsOfTrade(conditions rule) map[string]thing {
	price := object(map[string]rule{
		"amount": quantity, "currency": currency, "period": period, "text": unnamed(shaped(`^[0-9.]{1,32} [A-Z]{3}(/[0-9a-z]{1,8})?$`)),
	})
	money := object(map[string]rule{"amount": quantity, "currency": currency})
	ready := object(map[string]rule{"type": word, "status": word, "reason": word, "since": moment})
	span := object(map[string]rule{
		"min": amounts, "max": amounts, "step": amounts,
		"unitPrices": by(resource, object(map[string]rule{"amount": quantity, "per": quantity})),
	})
	// A party is known by its ID, and its short form is one name of it.
	party := map[string]rule{"id": name("party"), "short": called(name("party")), "name": called(name("party"))}
	seller := map[string]rule{"alive": number, "offers": number, "regions": all(name("region"))}
	maps.Copy(seller, party)
	return map[string]thing{
		"contracts": {"contract", []rule{word, name("contract")}, object(map[string]rule{
			"asked":   object(map[string]rule{"end": moment, "plan": name("plan"), "price": price, "resources": amounts}),
			"cluster": with("provider", nil), "conditions": conditions, "contractID": name("id"),
			"cost":    object(map[string]rule{"maxTotal": money, "soFar": all(money), "toTheEnd": all(money)}),
			"created": moment, "deeds": all(word), "end": moment, "ending": number, "name": name("contract"), "nodes": all(name("node")),
			"offer": name("offer"), "paidUntil": moment, "party": object(party), "plan": name("plan"), "podsLeft": number, "price": price,
			"promise": object(map[string]rule{"availability": quantity, "credit": quantity}), "ready": ready, "renew": number,
			"request": name("request"), "resources": amounts, "sold": number, "start": moment, "state": word,
			"steps": all(object(map[string]rule{
				"at": moment, "event": word, "from": word, "to": word, "terms": number,
			})),
			"suspended": number, "version": always(""), "waits": number,
		})},
		"requests": {"request", []rule{name("request")}, object(map[string]rule{
			"created": moment, "duration": lasting, "maxPrice": price, "maxTotal": money, "name": name("request"), "purchase": name("contract"),
			"ready": ready, "regions": all(name("region")), "renew": number, "resources": amounts,
		})},
		"ownoffers": {"ownOffer", []rule{name("offer")}, object(map[string]rule{
			"conditions": conditions, "created": moment, "name": name("offer"), "open": number, "otherwise": word, "region": name("region"),
			"revision": number, "sold": number, "title": titled, "validUntil": moment,
			"rules": all(object(map[string]rule{"expression": always("left out"), "verdict": word})),
			"plans": all(object(map[string]rule{
				"id": name("plan"), "left": number, "price": price, "range": span, "resources": amounts, "sold": number, "stock": number,
			})),
		})},
		"registries": {"registry", []rule{name("registry")}, object(map[string]rule{
			"conditions": conditions, "created": moment, "leaseUntil": moment, "name": name("registry"), "offers": number, "parties": number,
			"publish": number, "url": always("left out"),
		})},
		"market": {"market", []rule{word}, object(map[string]rule{
			"leftOut": number, "more": number, "offers": number, "regions": all(name("region")), "revision": always(""), "self": object(party),
			"sellers": all(object(seller)),
		})},
	}
}
