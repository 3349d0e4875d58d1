// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// MaxText is how long a text may be that is tried for what it changes, in bytes.
const MaxText = 64 << 10

// How much of a trial is told.
const (
	maxConsumers = 100
	maxClusters  = 20
)

// What a trial cannot know.
const (
	noteMemory = "It is tried as if nothing had been chosen before: what is chosen now may stay until something better " +
		"lasts, as spec.steady says"
	noteRules  = "The API server was not asked: it checks some rules between fields when the policy is applied"
	noteNoPods = "You may not list pods, nodes and namespaces, so that what would move is not known"
)

// Try returns what the policy of a text would decide, and what of that is another thing than today. The error is [apiv1.FaultsError] for a
// text that has not one good policy.
func (t *Trier) Try(ctx context.Context, now time.Time, text string) (apiv1.PolicyTrial, error) {
	document, err := t.one(text)
	if err != nil {
		return apiv1.PolicyTrial{}, err
	}
	check, err := t.Check(ctx, now, document)
	if err != nil {
		return apiv1.PolicyTrial{}, err
	}
	if len(check.Faults) > 0 {
		return apiv1.PolicyTrial{}, check.Faults
	}
	today, err := t.readToday(ctx, check.Policy)
	if err != nil {
		return apiv1.PolicyTrial{}, err
	}
	return today.compare(now, check, t.admit == nil), nil
}

// one reads a text that has one policy. The error is [apiv1.FaultsError].
func (t *Trier) one(text string) (*Document, error) {
	if len(text) > MaxText {
		return nil, apiv1.FaultsError{{Says: fmt.Sprintf("it is longer than %d bytes", MaxText)}}
	}
	documents, err := t.Read([]byte(text))
	switch {
	case errors.Is(err, ErrNothing):
		return nil, apiv1.FaultsError{{Says: "this " + err.Error()}}
	case err != nil:
		return nil, err
	case len(documents) > 1:
		return nil, apiv1.FaultsError{{Line: documents[1].before + 1, Says: "one policy is tried at a time"}}
	}
	return &documents[0], nil
}

// Object returns the one policy of a text as an object that has no more than the text says. The error is [apiv1.FaultsError].
func (t *Trier) Object(text string) (object map[string]any, err error) {
	d, err := t.one(text)
	if err != nil {
		return nil, err
	}
	return d.object, nil
}

// today is what there is, beside a policy that is tried.
type today struct {
	policy    *v1alpha1.PlacementPolicy
	exists    bool
	rules     []binding.Policy // Of the policies that there are.
	decisions map[string]*v1alpha1.PlacementDecision
	ready     map[string]string // Names of the providers that come into question without a policy, by their IDs.
	// spaces are the namespaces that would follow the policy, by consumer; nil if that is not known.
	spaces map[string][]space
}

// space is a namespace that would follow the policy.
type space struct {
	follows string         // Which policy it follows today; empty for none.
	pods    map[string]int // How many of its pods are on each provider.
}

// readToday reads what there is.
func (t *Trier) readToday(ctx context.Context, p *v1alpha1.PlacementPolicy) (*today, error) {
	var (
		policies  v1alpha1.PlacementPolicyList
		decisions v1alpha1.PlacementDecisionList
		providers v1alpha1.ProviderList
	)
	for _, list := range []client.ObjectList{&policies, &decisions, &providers} {
		if err := t.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	// What the policies decide today, and which other ones there would be.
	is := &today{
		policy: p, rules: snapshot.Rules(policies.Items), ready: map[string]string{},
		decisions: make(map[string]*v1alpha1.PlacementDecision, len(decisions.Items)),
	}
	uids := make(map[string]*v1alpha1.PlacementPolicy, len(policies.Items))
	others := []v1alpha1.PlacementPolicy{*p}
	for i := range policies.Items {
		other := &policies.Items[i]
		uids[other.Name] = other
		if other.Name == p.Name {
			is.exists = true
		} else {
			others = append(others, *other)
		}
	}
	for i := range decisions.Items {
		d := &decisions.Items[i]
		if policy := uids[d.Policy]; policy != nil && d.IsOf(policy, d.Consumer) {
			is.decisions[v1alpha1.DecisionName(d.Policy, d.Consumer)] = d
		}
	}
	// What comes into question where none decides.
	for i := range providers.Items {
		provider := &providers.Items[i]
		if provider.EffectiveScheduling() == v1alpha1.SchedulingActive &&
			meta.IsStatusConditionTrue(provider.Status.Conditions, v1alpha1.ConditionReady) {
			is.ready[provider.Name] = provider.Status.ClusterName
		}
	}
	return is, is.readSpaces(ctx, t.objects, policies.Items, others, providers.Items)
}

// readSpaces finds the namespaces that would follow the policy, if the caller may read them.
func (is *today) readSpaces(
	ctx context.Context, objects client.Reader, now, then []v1alpha1.PlacementPolicy, providers []v1alpha1.Provider,
) error {
	var (
		namespaces corev1.NamespaceList
		nodes      corev1.NodeList
		pods       corev1.PodList
	)
	for _, list := range []client.ObjectList{&namespaces, &nodes, &pods} {
		err := objects.List(ctx, list, client.UnsafeDisableDeepCopy)
		if apierrors.IsForbidden(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	on := overview.OnBroker{Providers: providers, Namespaces: namespaces.Items, Nodes: nodes.Items, Pods: pods.Items}
	before, after := on.Followed(now), on.Followed(then)
	placed := map[string]map[string]int{}
	for _, pod := range on.Placed("") {
		if pod.Provider == nil || after[pod.Twin] != is.policy.Name {
			continue
		}
		if placed[pod.Twin] == nil {
			placed[pod.Twin] = map[string]int{}
		}
		placed[pod.Twin][pod.Provider.ID]++
	}
	is.spaces = map[string][]space{}
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		if consumer, twin := liqo.TwinOf(ns); twin && after[ns.Name] == is.policy.Name {
			is.spaces[string(consumer)] = append(is.spaces[string(consumer)], space{before[ns.Name], placed[ns.Name]})
		}
	}
	return nil
}

// compare returns what a trial says, and what of it is another thing than today.
func (is *today) compare(now time.Time, check *Check, unasked bool) apiv1.PolicyTrial {
	trial := apiv1.PolicyTrial{
		Policy: is.policy.Name, Exists: is.exists, Problems: sentences(check.Problems), Notes: sentences(check.Notes),
		Consumers: []apiv1.TriedDecision{},
	}
	for what, note := range map[string]bool{noteMemory: is.exists, noteRules: unasked, noteNoPods: is.spaces == nil} {
		if note {
			trial.Notes = append(trial.Notes, what)
		}
	}
	slices.Sort(trial.Notes)
	decides := map[string]bool{}
	for i := range check.Trial.Decisions {
		tried := &check.Trial.Decisions[i]
		decides[tried.Consumer] = true
		trial.Consumers = append(trial.Consumers, is.compareOne(now, tried))
	}
	// Where something changes, before where all stays.
	rank := func(d *apiv1.TriedDecision) int {
		if d.Problem != "" || len(d.In)+len(d.Out) > 0 {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(trial.Consumers, func(a, b apiv1.TriedDecision) int { return cmp.Compare(rank(&a), rank(&b)) })
	if more := len(trial.Consumers) - maxConsumers; more > 0 {
		trial.Consumers, trial.More = trial.Consumers[:maxConsumers], more
	}
	dropped := map[string]string{}
	for _, d := range is.decisions {
		if d.Policy == is.policy.Name && !decides[d.Consumer] {
			dropped[d.Consumer] = d.ConsumerName
		}
	}
	trial.Dropped, trial.MoreDropped = named(dropped)
	return trial
}

// compareOne returns what would be decided for one consumer, beside what is decided today.
func (is *today) compareOne(now time.Time, tried *placementpolicy.Tried) apiv1.TriedDecision {
	decision := &v1alpha1.PlacementDecision{Policy: is.policy.Name, ConsumerDecision: tried.ConsumerDecision}
	one := apiv1.TriedDecision{Decision: apiv1.DecisionOf(now, is.policy, decision)}
	if tried.Err != nil {
		one.Problem = sheet.Sentence(tried.Err.Error())
	}
	if tried.Consumer == "" {
		return one
	}
	spaces := is.spaces[tried.Consumer]
	if is.spaces != nil {
		one.Namespaces = new(len(spaces))
	}
	had := is.had(&one, tried.Consumer, spaces)
	if tried.Err != nil {
		return one
	}
	// What comes in, and what goes out with how many pods.
	in, out := map[string]string{}, had
	for _, c := range tried.Chosen {
		if _, both := out[c.ID]; !both {
			in[c.ID] = c.Name
		}
		delete(out, c.ID)
	}
	if is.spaces != nil {
		pods := 0
		for _, s := range spaces {
			for id, n := range s.pods {
				if _, goes := out[id]; goes {
					pods += n
				}
			}
		}
		one.PodsOut = &pods
	}
	one.In, one.MoreIn = named(in)
	one.Out, one.MoreOut = named(out)
	return one
}

// had says which policies decide for the namespaces of a consumer today, and returns the providers that they have chosen, or that come into
// question without a policy: their names by their IDs.
func (is *today) had(one *apiv1.TriedDecision, consumer string, spaces []space) map[string]string {
	follows := map[string]bool{}
	for _, s := range spaces {
		follows[s.follows] = true
	}
	if len(spaces) == 0 {
		follows[is.inGeneral(consumer)] = true
	}
	chosen := map[string]string{}
	for _, policy := range slices.Sorted(maps.Keys(follows)) {
		if policy == "" {
			one.Free = true
			maps.Copy(chosen, is.ready)
			delete(chosen, consumer) // It does not provide to itself.
			continue
		}
		one.Today = append(one.Today, policy)
		if d := is.decisions[v1alpha1.DecisionName(policy, consumer)]; d != nil {
			for _, c := range d.Chosen {
				chosen[c.ID] = c.Name
			}
		}
	}
	return chosen
}

// inGeneral returns the policy that stands for a consumer of which no namespace is known that would follow the one that is tried: that
// itself as it is now, or else what decides for most of the consumer's namespaces.
func (is *today) inGeneral(consumer string) string {
	if is.decisions[v1alpha1.DecisionName(is.policy.Name, consumer)] != nil {
		return is.policy.Name
	}
	return binding.OfConsumer(is.rules, cluster.ID(consumer))
}

// named returns clusters in order of their IDs, and how many are left out.
func named(all map[string]string) (some []apiv1.Cluster, more int) {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if len(some) == maxClusters {
			return some, len(all) - maxClusters
		}
		some = append(some, apiv1.Cluster{ID: id, Name: sheet.Plain(all[id])})
	}
	return some, 0
}

func sentences(all []string) []string {
	shown := make([]string, len(all))
	for i, text := range all {
		shown[i] = sheet.Sentence(text)
	}
	return shown
}

// Manifest returns a policy as people apply it: its name, labels, annotations but those of tools, and spec, as YAML.
func (*Trier) Manifest(p *v1alpha1.PlacementPolicy) ([]byte, error) {
	kept := struct {
		metav1.TypeMeta `json:",inline"`

		Metadata struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels,omitempty"`
			Annotations map[string]string `json:"annotations,omitempty"`
		} `json:"metadata"`
		Spec *v1alpha1.PlacementPolicySpec `json:"spec"`
	}{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PlacementPolicy"}, Spec: &p.Spec}
	kept.Metadata.Name, kept.Metadata.Labels, kept.Metadata.Annotations = p.Name, p.Labels, maps.Clone(p.Annotations)
	delete(kept.Metadata.Annotations, corev1.LastAppliedConfigAnnotation)
	text, err := yaml.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("write placement policy %s: %w", p.Name, err)
	}
	return text, nil
}
