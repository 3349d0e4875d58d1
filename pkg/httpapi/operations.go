// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

// Identified names a cluster in a path.
type Identified struct {
	ID string `path:"id" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" doc:"A cluster ID."`
}

// flagged is a filter by something that is or is not.
type flagged string

// admits reports whether a value passes the filter.
func (f flagged) admits(value bool) bool { return f == "" || (f == "true") == value }

// matches reports whether a value passes a filter: an empty filter admits all.
func matches(filter, value string) bool { return filter == "" || filter == value }

// is reports whether a filter means a cluster, by its ID or its name.
func is(filter string, c apiv1.Cluster) bool {
	return filter == "" || filter == c.ID || filter == c.Name
}

type providersInput struct {
	rest.Paging

	Name       string  `query:"name" maxLength:"253" doc:"Only those with this name."`
	Scheduling string  `query:"scheduling" enum:"Active,Cordoned,Drained"`
	Ready      flagged `query:"ready" enum:"true,false"`
}

type consumersInput struct {
	rest.Paging

	Name  string  `query:"name" maxLength:"253" doc:"Only those with this name."`
	Mode  string  `query:"mode" enum:"Orchestrated,Aggregated"`
	Ready flagged `query:"ready" enum:"true,false"`
}

type offersInput struct {
	rest.Paging

	Consumer string `query:"consumer" maxLength:"253" doc:"The ID or the name of a consumer."`
}

type policiesInput struct {
	rest.Paging

	Scope string `query:"scope" enum:"Default,Consumers,Namespaces,OnRequest"`
}

type decisionsInput struct {
	rest.Paging

	Policy   string `query:"policy" maxLength:"253"`
	Consumer string `query:"consumer" maxLength:"253" doc:"The ID or the name of a consumer."`
}

type workloadsInput struct {
	rest.Paging

	Consumer  string `query:"consumer" maxLength:"253" doc:"The ID or the name of a consumer."`
	Provider  string `query:"provider" maxLength:"253" doc:"The ID or the name of a provider."`
	Namespace string `query:"namespace" maxLength:"253" doc:"As the consumer or the broker calls it."`
	Path      string `query:"path" enum:"direct,relay"`
}

type linksInput struct {
	rest.Paging

	Cluster   string  `query:"cluster" maxLength:"253" doc:"The ID or the name of the cluster at one of the ends."`
	Kind      string  `query:"kind" enum:"Broker,Direct"`
	Connected flagged `query:"connected" enum:"true,false"`
}

type flowsInput struct {
	rest.Paging

	Consumer string `query:"consumer" maxLength:"253" doc:"The ID or the name of a consumer."`
	Provider string `query:"provider" maxLength:"253" doc:"The ID or the name of a provider."`
	Path     string `query:"path" enum:"direct,relay"`
}

type activityInput struct {
	rest.Paging

	Kind    string  `query:"kind" maxLength:"128" doc:"The kind of the object that it is about, such as Provider."`
	Name    string  `query:"name" maxLength:"253" doc:"The name of the object, or that of the cluster."`
	By      string  `query:"by" maxLength:"253" doc:"The user who has changed something."`
	Warning flagged `query:"warning" enum:"true,false"`
}

type statusInput struct {
	rest.Conditional
}

type oneInput struct {
	Identified
	rest.Conditional
}

type drainInput struct {
	Identified

	Scheduling string `query:"scheduling" enum:"Cordoned,Drained" default:"Drained" doc:"What the provider would be."`
}

type policyInput struct {
	rest.Conditional

	Name string `path:"name" maxLength:"253"`
}

type decisionInput struct {
	rest.Conditional

	Policy   string `path:"policy" maxLength:"253"`
	Consumer string `path:"consumer" maxLength:"253" doc:"A cluster ID."`
}

type tryInput struct {
	Body PolicyText
}

// PolicyText is a policy as somebody writes it.
type PolicyText struct {
	Policy string `json:"policy" minLength:"1" maxLength:"65536" doc:"A PlacementPolicy as YAML or JSON."`
}

type schedulingInput struct {
	Identified

	Body Scheduling
}

// Scheduling is whether pods may come to a provider, and whether they may stay.
type Scheduling struct {
	Scheduling string `json:"scheduling" enum:"Active,Cordoned,Drained" doc:"Active lets new pods come. Cordoned lets none come, and those stay that are there. Drained moves them to other providers."`
}

type consumerSchedulingInput struct {
	Identified

	Body SchedulingOfConsumer
}

// SchedulingOfConsumer is whether a consumer gets anything new.
type SchedulingOfConsumer struct {
	Scheduling string `json:"scheduling" enum:"Active,Suspended" doc:"Active is offered what there is for it. Suspended keeps what it uses, and gets nothing new."`
}

// operations registers what version 1 of the API does.
func (v *v1) operations() {
	v.lists()
	v.happened()
	v.single()
	v.previews()
	v.changes()
	v.events()
	v.me()
	v.older()
}

// older describes the paths that are older than version 1, and stay. Other handlers serve them, with other modes and flags.
func (v *v1) older() {
	document := v.api.OpenAPI()
	const tag = "older"
	document.Tags = append(document.Tags, &huma.Tag{Name: tag, Description: "Paths that are older than version 1, and stay."})
	answer := func(says string, schema *huma.Schema) map[string]*huma.Response {
		problem := &huma.Schema{Ref: "#/components/schemas/ErrorModel"}
		return map[string]*huma.Response{
			"200":     {Description: says, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}},
			"default": {Description: "Error", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: problem}}},
		}
	}
	security := []map[string][]string{{"token": {}}, {}}
	v.api.Describe(&huma.Operation{
		OperationID: "listClusters", Method: http.MethodGet, Path: "/api/clusters", Tags: []string{tag}, Security: security,
		Summary: "List the clusters that the broker knows, in order of name",
		Description: "Needs the right to " + right("list", "providers").String() + ". Flags of the daemon say what is shown without a token. A " +
			"catalog and an orchestrator serve it.",
		Responses: answer("The clusters, as ForeignClusters of Liqo without what is not for others",
			&huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}),
	})
	toggle := huma.Operation{
		OperationID: "toggleProvider", Method: http.MethodPost, Path: "/api/toggle", Tags: []string{tag}, Security: security,
		Summary: "Make a provider Active, or Drained",
		Description: "Needs the right to " + right("update", "providers").String() + ", unless the daemon runs with --anonymous-toggle. An " +
			"orchestrator serves it.",
		Parameters: []*huma.Param{
			{Name: "id", In: "query", Required: true, Description: "Its cluster ID.", Schema: &huma.Schema{Type: huma.TypeString}},
			{
				Name: "enable", In: "query", Required: true, Description: "Active if true, and else Drained.",
				Schema: &huma.Schema{Type: huma.TypeBoolean},
			},
		},
		Responses: answer("What it is now", document.Components.Schemas.Schema(reflect.TypeFor[toggled](), true, "Toggled")),
	}
	byGet := toggle
	byGet.OperationID, byGet.Method = "toggleProviderByGet", http.MethodGet
	byGet.Security = security[:1]
	byGet.Description = "The same, for clients that cannot post. It always needs a token."
	v.api.Describe(&toggle)
	v.api.Describe(&byGet)
}

// lists registers what answers with pages.
func (v *v1) lists() {
	// Clusters, and what they are offered.
	list(v, "listProviders", "/providers", shown.Providers, access{resource: "providers"}, "List the providers, in order of ID",
		func(in *providersInput) query[apiv1.Provider] {
			return query[apiv1.Provider]{in.Paging, []string{in.Name, in.Scheduling, string(in.Ready)}, func(p apiv1.Provider) bool {
				return matches(in.Name, p.Name) && matches(in.Scheduling, p.Scheduling) && in.Ready.admits(p.Ready)
			}}
		})
	list(v, "listConsumers", "/consumers", shown.Consumers, access{resource: "consumers"}, "List the consumers, in order of ID",
		func(in *consumersInput) query[apiv1.Consumer] {
			return query[apiv1.Consumer]{in.Paging, []string{in.Name, in.Mode, string(in.Ready)}, func(c apiv1.Consumer) bool {
				return matches(in.Name, c.Name) && matches(in.Mode, c.Mode) && in.Ready.admits(c.Ready)
			}}
		})
	list(v, "listOffers", "/offers", shown.Offers, access{resource: "consumers", own: true},
		"List what each consumer is offered, in order of the consumers' IDs", func(in *offersInput) query[apiv1.Offer] {
			return query[apiv1.Offer]{in.Paging, []string{in.Consumer}, func(o apiv1.Offer) bool { return is(in.Consumer, o.Consumer) }}
		})
	// What is decided about them.
	list(v, "listPolicies", "/policies", shown.Policies, access{resource: "placementpolicies"}, "List the policies, in order of name",
		func(in *policiesInput) query[apiv1.Policy] {
			return query[apiv1.Policy]{in.Paging, []string{in.Scope}, func(p apiv1.Policy) bool { return matches(in.Scope, p.Scope) }}
		})
	list(v, "listDecisions", "/decisions", shown.Decisions, access{resource: "placementdecisions"},
		"List what the policies have decided, and why", func(in *decisionsInput) query[apiv1.Decision] {
			return query[apiv1.Decision]{in.Paging, []string{in.Policy, in.Consumer}, func(d apiv1.Decision) bool {
				return matches(in.Policy, d.Policy) && is(in.Consumer, d.Consumer)
			}}
		})
	// What came of it: pods, and the ways to them.
	list(v, "listWorkloads", "/workloads", shown.Workloads, access{resource: "workloads", own: true},
		"List where the consumers' pods run, and by which path they are reached", func(in *workloadsInput) query[apiv1.Workload] {
			filters := []string{in.Consumer, in.Provider, in.Namespace, in.Path}
			return query[apiv1.Workload]{in.Paging, filters, func(w apiv1.Workload) bool {
				on := apiv1.Cluster{}
				if w.Provider != nil {
					on = *w.Provider
				}
				return is(in.Consumer, w.Consumer) && is(in.Provider, on) && matches(in.Path, w.Path) &&
					(matches(in.Namespace, w.Namespace) || in.Namespace == w.BrokerNamespace)
			}}
		})
	list(v, "listFlows", "/flows", shown.Flows, access{resource: "workloads"},
		"Count the consumers' pods by provider and path", func(in *flowsInput) query[apiv1.Flow] {
			return query[apiv1.Flow]{in.Paging, []string{in.Consumer, in.Provider, in.Path}, func(f apiv1.Flow) bool {
				on := apiv1.Cluster{}
				if f.Provider != nil {
					on = *f.Provider
				}
				return is(in.Consumer, f.Consumer) && is(in.Provider, on) && matches(in.Path, f.Path)
			}}
		})
	list(v, "listLinks", "/links", shown.Links, access{resource: "links"}, "List the tunnels between the clusters, and how they are",
		func(in *linksInput) query[apiv1.Link] {
			return query[apiv1.Link]{in.Paging, []string{in.Cluster, in.Kind, string(in.Connected)}, func(l apiv1.Link) bool {
				return (is(in.Cluster, l.From) || is(in.Cluster, l.To)) && matches(in.Kind, l.Kind) && in.Connected.admits(l.Connected)
			}}
		})
}

// happened registers what answers with what has happened.
func (v *v1) happened() {
	list(v, "listActivity", "/activity", shown.Activity, access{resource: "activity"},
		"List what has happened to the broker's objects, and who has changed them, newest first",
		func(in *activityInput) query[apiv1.Activity] {
			filters := []string{in.Kind, in.Name, in.By, string(in.Warning)}
			return query[apiv1.Activity]{in.Paging, filters, func(a apiv1.Activity) bool {
				of := apiv1.Cluster{ID: a.Name}
				if about := cmp.Or(a.Provider, a.Consumer); about != nil {
					of = *about
				}
				return matches(in.Kind, a.Kind) && is(in.Name, of) && matches(in.By, a.By) && in.Warning.admits(a.Warning)
			}}
		})
}

// single registers what is about one thing.
func (v *v1) single() {
	get[apiv1.Provider](v, "getProvider", "/providers/{id}", shown.Providers, access{resource: "providers"}, "Get a provider",
		func(in *oneInput) (string, rest.Conditional) { return in.ID, in.Conditional })
	get[apiv1.Consumer](v, "getConsumer", "/consumers/{id}", shown.Consumers, access{resource: "consumers", own: true}, "Get a consumer",
		func(in *oneInput) (string, rest.Conditional) { return in.ID, in.Conditional })
	get[apiv1.Advice](v, "getAdvice", "/consumers/{id}/advice", shown.Advice, access{resource: "advice", own: true},
		"Get with which providers a consumer should have a peering of its own now, and why",
		func(in *oneInput) (string, rest.Conditional) { return in.ID, in.Conditional })
	get[apiv1.Status](v, "getStatus", "/status", shown.Status, access{resource: "status"},
		"Get what should be looked at, and how much there is",
		func(in *statusInput) (string, rest.Conditional) { return shown.TheStatus, in.Conditional })
	get[apiv1.Policy](v, "getPolicy", "/policies/{name}", shown.Policies, access{resource: "placementpolicies"}, "Get a policy",
		func(in *policyInput) (string, rest.Conditional) { return in.Name, in.Conditional })
	get[apiv1.Decision](v, "getDecision", "/decisions/{policy}/{consumer}", shown.Decisions, access{resource: "placementdecisions"},
		"Get what a policy has decided for a consumer, and why",
		func(in *decisionInput) (string, rest.Conditional) {
			return shown.DecisionKey(in.Policy, in.Consumer), in.Conditional
		})
}

// previews registers what tells of what would be.
func (v *v1) previews() {
	drain := v.operation("previewDrain", http.MethodGet, "/providers/{id}/drain", access{verb: "get", resource: "plans"},
		"Say which pods would leave a provider that is drained, and where they could go")
	drain.Errors = append(drain.Errors, http.StatusNotFound)
	rest.Register(v.api, drain, func(ctx context.Context, in *drainInput) (*struct{ Body apiv1.DrainPreview }, error) {
		if v.cfg.Explainer == nil {
			return nil, rest.Refusal(http.StatusNotFound, messageNoPlans)
		}
		preview, ok, err := v.cfg.Explainer.PreviewDrain(ctx, cluster.ID(in.ID), v1alpha1.Scheduling(in.Scheduling))
		switch {
		case err != nil:
			return nil, fmt.Errorf("preview a drain of provider %s: %w", in.ID, err)
		case !ok:
			return nil, rest.Refusal(http.StatusNotFound, fmt.Sprintf(messageNoProvider, in.ID))
		default:
			return &struct{ Body apiv1.DrainPreview }{preview}, nil
		}
	})

	v.trials()
}

// trials registers what tries policies.
func (v *v1) trials() {
	try := v.operation("tryPolicy", http.MethodPost, "/policies/try", access{verb: "get", resource: "placementpolicies"},
		"Say what a policy would decide now, and what of that is another thing than today")
	try.Description += " Nothing is written. What is wrong with the policy is told with the line and the field."
	try.Errors, try.MaxBodyBytes = append(try.Errors, http.StatusNotFound), maxPolicyBody
	rest.Register(v.api, try, func(ctx context.Context, in *tryInput) (*struct{ Body apiv1.PolicyTrial }, error) {
		if v.cfg.TryPolicy == nil {
			return nil, rest.Refusal(http.StatusNotFound, messageNoTrials)
		}
		select {
		case v.trying <- struct{}{}:
			defer func() { <-v.trying }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		trial, err := v.cfg.TryPolicy(ctx, in.Body.Policy)
		if faults := apiv1.FaultsError(nil); errors.As(err, &faults) {
			return nil, wrongPolicy(faults)
		} else if err != nil {
			return nil, fmt.Errorf("try a policy: %w", err)
		}
		return &struct{ Body apiv1.PolicyTrial }{trial}, nil
	})
}

// wrongPolicy refuses a policy, with each fault and its place.
func wrongPolicy(faults apiv1.FaultsError) error {
	details := make([]error, len(faults))
	for i := range faults {
		details[i] = &huma.ErrorDetail{Location: "body.policy", Message: sheet.Sentence(faults[i].String())}
	}
	return huma.NewError(http.StatusUnprocessableEntity, sheet.Sentence(faults.Error()), details...)
}

// changes registers what changes something.
func (v *v1) changes() {
	put := v.operation("setScheduling", http.MethodPut, "/providers/{id}/scheduling", access{verb: "update", resource: "providers"},
		"Activate, cordon or drain a provider")
	put.Errors = append(put.Errors, http.StatusNotFound)
	change(v, put, func(ctx context.Context, in *schedulingInput) (Scheduling, error) {
		wanted := v1alpha1.Scheduling(in.Body.Scheduling)
		p, err := v.cfg.schedule(ctx, callerOf(ctx).name, in.ID, wanted)
		if err != nil {
			return Scheduling{}, err
		}
		return Scheduling{string(cmp.Or(p.Spec.Scheduling, wanted))}, nil
	}, shown.Providers, shown.Advice)

	put = v.operation("setConsumerScheduling", http.MethodPut, "/consumers/{id}/scheduling", access{verb: "update", resource: "consumers"},
		"Suspend a consumer, or let it go on")
	put.Errors = append(put.Errors, http.StatusNotFound)
	change(v, put, func(ctx context.Context, in *consumerSchedulingInput) (SchedulingOfConsumer, error) {
		wanted := v1alpha1.ConsumerScheduling(in.Body.Scheduling)
		c, err := v.cfg.scheduleConsumer(ctx, callerOf(ctx).name, in.ID, wanted)
		if err != nil {
			return SchedulingOfConsumer{}, err
		}
		return SchedulingOfConsumer{string(cmp.Or(c.Spec.Scheduling, wanted))}, nil
	}, shown.Consumers, shown.Offers)
}

// change registers what changes something, of which some kinds are made, and answers how it is now.
func change[B, I any](v *v1, op huma.Operation, set func(context.Context, *I) (B, error), of ...feed.Kind) {
	rest.Register(v.api, op, func(ctx context.Context, in *I) (*struct{ Body B }, error) {
		is, err := set(ctx, in)
		if err != nil {
			return nil, err
		}
		v.feed.Changed(of...)
		return &struct{ Body B }{is}, nil
	})
}
