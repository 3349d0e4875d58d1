// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/inventory"
)

// Variables of TestJunk: the seed of what it draws, and how many values it draws for each kind.
const (
	seedVariable = "LIQO_BROKER_TEST_SEED"
	junkVariable = "LIQO_BROKER_TEST_JUNK"
)

// Bounds of TestJunk: how many values it draws if nobody says it, and after what time the daemon counts as one that never decides.
const (
	drawn       = 60
	storedDrawn = 40
	decidesIn   = 2 * time.Minute
)

// junk is what people and programs write where something else is meant, as JSON.
var junk = []string{
	`null`, `true`, `0`, `-1`, `1.5`, `1e99`, `2147483648`, `9223372036854775807`, `-9223372036854775808`, `[]`, `{}`, `[[]]`,
	`{"a":{"b":[1]}}`, `""`, `" "`, `"10"`, `"-1"`, `"-5m"`, `"0s"`, `"1d"`, `"99999999999h"`, `"1e1.5"`, `"1e99"`, `"1e999999"`,
	`"1e-2147483647"`, `"1e2147483647"`, `"0x10"`, `"NaN"`, `"Inf"`, `"true"`, `"null"`, `"2024-02-30T00:00:00Z"`, `"2024-01-01T00:00:00"`,
	`"\u0000\u0007\n\u001b[31m"`, `"é🙂\u202e"`, `"../../x"`, `"` + strings.Repeat("x", 300) + `"`, `"` + strings.Repeat("9", 300) + `"`,
}

// many is how many elements a list and a map have that are too long.
const many = 10_000

// TestJunk writes junk into each field of each kind that the broker reads, as far as the API server takes it, and holds that
// the daemon goes on to decide: about what was stored before it started, when the schemas were not as strict, and about what
// people and peers write while it runs. The remote IPAM then starts with all of that.
func TestJunk(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d repeats this", seedVariable, seed)
	random := rand.New(rand.NewPCG(seed, 0))

	s := startServer(t)
	s.config.QPS = -1
	f := federation{providers: 2, consumers: 1, chosen: 1}
	f.populate(s)
	definitions := s.definitions()
	for _, d := range definitions {
		if d.Spec.Group == v1alpha1.Group {
			s.storeBefore(d, random)
		}
	}
	hostile := f.offer(1)
	for i, value := range []string{`"1e1.5"`, `"1e-2147483647"`, `"1e2147483647"`} {
		if _, err := s.apply(s.offerWith(hostile, fmt.Sprint("stored-", i), value), ""); err != nil {
			t.Fatalf("a peer writes an offer with %s: %v", value, err)
		}
	}

	stop := s.startDaemon()
	defer stop()
	s.decides(f, "with what was stored before it started")
	s.seesInvalidOffer(f)
	for _, d := range definitions {
		taken, all := s.writeJunk(d, random)
		t.Logf("%s: the API server takes %d of %d", d.Spec.Names.Kind, taken, all)
		s.decides(f, "after junk in "+d.Spec.Names.Kind)
	}
	s.takesStock(f)
}

// definitions returns those of the kinds that are written into: all of the broker, and of Liqo those that the daemon and the
// remote IPAM read, in order.
func (s *server) definitions() []*apiextensionsv1.CustomResourceDefinition {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		s.tb.Fatal(err)
	}
	c, err := client.New(s.config, client.Options{Scheme: scheme})
	if err != nil {
		s.tb.Fatal(err)
	}
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(s.tb.Context(), &list); err != nil {
		s.tb.Fatal(err)
	}
	read := []string{"ResourceOffer", "TunnelEndpoint", "NamespaceMap", "ForeignCluster", "NamespaceOffloading", "ShadowPod"}
	var found []*apiextensionsv1.CustomResourceDefinition
	for i := range list.Items {
		if d := &list.Items[i]; d.Spec.Group == v1alpha1.Group || slices.Contains(read, d.Spec.Names.Kind) {
			found = append(found, d)
		}
	}
	if want := 6 + len(read); len(found) != want {
		s.tb.Fatalf("%d definitions, want %d", len(found), want)
	}
	slices.SortFunc(found, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// storeBefore stores junk while a definition says nothing of the fields, as if it had become stricter since.
func (s *server) storeBefore(d *apiextensionsv1.CustomResourceDefinition, random *rand.Rand) {
	strict := d.DeepCopy()
	loose := d.DeepCopy()
	loose.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	s.define(loose)
	object, part := s.object(d, 0), fieldsOf(d)[0]
	object.SetName("loose")
	s.eventually("a loose definition of "+d.Name, func() bool {
		object.Object[part] = map[string]any{"any": "thing"}
		_, err := s.apply(object, "")
		return err == nil
	})
	stored := 0
	for _, w := range draw(s.places(strict), random, storedDrawn) {
		object := s.object(strict, w.variant)
		object.SetName(fmt.Sprint("stored-", stored))
		if _, err := s.apply(put(object, w.path, w.value), ""); err == nil {
			stored++
		}
	}
	s.define(strict)
	object.SetName("strict")
	s.eventually("a strict definition of "+d.Name, func() bool {
		object.Object[part] = []any{map[string]any{"any": []any{"thing"}}}
		_, err := s.apply(object, "")
		return err != nil
	})
	s.tb.Logf("%s: %d are stored", d.Spec.Names.Kind, stored)
}

// define replaces a definition.
func (s *server) define(d *apiextensionsv1.CustomResourceDefinition) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		s.tb.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	unstructured.RemoveNestedField(object.Object, "status")
	current := object.DeepCopy()
	if err := s.client.Get(s.tb.Context(), client.ObjectKeyFromObject(object), current); err != nil {
		s.tb.Fatal(err)
	}
	object.SetResourceVersion(current.GetResourceVersion())
	if err := s.client.Update(s.tb.Context(), object); err != nil {
		s.tb.Fatalf("update the definition %s: %v", d.Name, err)
	}
}

// writeJunk writes values into one object of a kind, and returns how many the API server took.
func (s *server) writeJunk(d *apiextensionsv1.CustomResourceDefinition, random *rand.Rand) (taken, all int) {
	variants := []*unstructured.Unstructured{s.object(d, 0)}
	if d.Spec.Names.Kind == "PlacementPolicy" {
		variants = append(variants, s.object(d, 1))
	}
	for i, v := range variants {
		for _, sub := range subresources(d) {
			if d.Spec.Group != v1alpha1.Group {
				continue // Its own schema may refuse what is made from it.
			}
			if _, err := s.apply(v, sub); err != nil {
				s.tb.Errorf("%s %d without junk is refused: %v", d.Spec.Names.Kind, i, err)
			}
		}
	}
	count := drawn
	if text := os.Getenv(junkVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			s.tb.Fatalf("%s: %v", junkVariable, err)
		}
	}
	for _, w := range draw(s.places(d), random, count) {
		object := put(variants[w.variant], w.path, w.value)
		sub := ""
		if w.path[0] == "status" && len(subresources(d)) > 1 {
			sub = "status"
		}
		ok, err := s.apply(object, sub)
		if utilnet.IsConnectionRefused(err) {
			s.tb.Fatalf("the API server is gone: %v", err)
		}
		if all++; ok {
			taken++
		}
	}
	return taken, all
}

// subresources returns where an object of a kind is written to.
func subresources(d *apiextensionsv1.CustomResourceDefinition) []string {
	if sub := d.Spec.Versions[0].Subresources; sub != nil && sub.Status != nil {
		return []string{"", "status"}
	}
	return []string{""}
}

// apply applies an object, and reports whether the API server takes it.
func (s *server) apply(object *unstructured.Unstructured, subresource string) (bool, error) {
	o := object.DeepCopy()
	owner := client.FieldOwner("junk")
	var err error
	if subresource == "" {
		err = s.client.Patch(s.tb.Context(), o, client.Apply, owner, client.ForceOwnership)
	} else {
		err = s.client.SubResource(subresource).Patch(s.tb.Context(), o, client.Apply, owner, client.ForceOwnership)
	}
	return err == nil, err
}

// object returns an object of a kind whose fields all have a sample, or for a policy all but those that exclude each other:
// of these each variant has some.
func (s *server) object(d *apiextensionsv1.CustomResourceDefinition, variant int) *unstructured.Unstructured {
	version := d.Spec.Versions[0]
	content, _ := sample(version.Schema.OpenAPIV3Schema).(map[string]any)
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.Kind})
	object.Object["metadata"] = map[string]any{"name": "junk", "labels": map[string]any{
		"liqo.io/replicated": "true", "liqo.io/originID": "x", "liqo.io/remote-cluster-id": "x",
	}}
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		object.SetNamespace(federation{consumers: 1}.offer(1).Namespace)
	}
	set := func(value any, path ...string) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			s.tb.Fatal(err)
		}
	}
	switch d.Spec.Names.Kind {
	case "Consumer": // Rules compare the two.
		set(map[string]any{"cpu": int64(2)}, "spec", "capacity", "limit")
		set(map[string]any{"cpu": int64(1)}, "spec", "capacity", "reserved")
	case "PlacementPolicy":
		without := [][]string{{"scaling"}, {"appliesTo", "namespaces"}}
		if variant == 1 {
			without = [][]string{{"maxProviders"}, {"spread"}}
			set("2", "spec", "scaling", "offloadAbove")
			set("Namespaces", "spec", "appliesTo", "scope")
		} else {
			set("Consumers", "spec", "appliesTo", "scope")
		}
		for _, path := range without {
			unstructured.RemoveNestedField(object.Object, append([]string{"spec"}, path...)...)
		}
		set([]any{"true"}, "spec", "filters")
	}
	return object
}

// texts are samples for fields of text, of which one fits each pattern.
var texts = []string{"x", "1", "10s", "EUR", "1.5", "2024-01-01T00:00:00Z", "https://x.example.org", "10.0.0.0/16", "10.0.0.1"}

// sample returns a value that a schema takes.
func sample(s *apiextensionsv1.JSONSchemaProps) any {
	decoded := func(raw []byte) any {
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
			panic(err)
		}
		return value
	}
	switch {
	case len(s.Enum) > 0:
		return decoded(s.Enum[0].Raw)
	case s.Default != nil && s.Type != "object":
		return decoded(s.Default.Raw)
	case s.XIntOrString || s.Type == "integer" || s.Type == "number":
		return int64(1)
	case s.Type == "boolean":
		return true
	case s.Type == "array":
		return []any{sample(s.Items.Schema)}
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return map[string]any{"x": sample(s.AdditionalProperties.Schema)}
	case s.Type == "object":
		fields := map[string]any{}
		for name, field := range s.Properties {
			fields[name] = sample(&field)
		}
		return fields
	}
	for _, text := range texts {
		if s.Format == "date-time" {
			text = "2024-01-01T00:00:00Z"
		}
		if s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(text) {
			for _, rule := range s.XValidations { // All rules on texts are on durations and times.
				if strings.Contains(rule.Rule, "duration(self)") {
					text = "10s"
				}
			}
			return text
		}
	}
	panic("no sample fits " + s.Pattern)
}

// written is a value for a field of one variant of an object.
type written struct {
	variant int
	path    []string
	value   string
}

// draw returns some of all values, in any order.
func draw(all []written, random *rand.Rand, count int) []written {
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(count, len(all))]
}

// fieldsOf returns the fields of a kind that its definition says something of, in order: spec and status, or those of one that has
// neither.
func fieldsOf(d *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string
	for name := range d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// places returns each junk for each field of a kind.
func (s *server) places(d *apiextensionsv1.CustomResourceDefinition) []written {
	var all []written
	root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	var walk func(field *apiextensionsv1.JSONSchemaProps, path []string)
	walk = func(field *apiextensionsv1.JSONSchemaProps, path []string) {
		variant := 0
		if d.Spec.Names.Kind == "PlacementPolicy" && len(path) > 1 &&
			(path[1] == "scaling" || path[1] == "appliesTo" && len(path) > 2 && path[2] == "namespaces") {
			variant = 1
		}
		add := func(value string) {
			all = append(all, written{variant: variant, path: slices.Clone(path), value: value})
		}
		for _, value := range junk {
			add(value)
		}
		switch {
		case field.Type == "array":
			element, err := json.Marshal(sample(field.Items.Schema))
			if err != nil {
				s.tb.Fatal(err)
			}
			if len(element) < 200 { // More than the API server reads would be refused for another reason.
				add("[" + strings.Repeat(string(element)+",", many-1) + string(element) + "]")
			}
			walk(field.Items.Schema, append(path, "0"))
		case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
			element, err := json.Marshal(sample(field.AdditionalProperties.Schema))
			if err != nil {
				s.tb.Fatal(err)
			}
			var entries []string
			for n := range many {
				entries = append(entries, fmt.Sprintf("%q:%s", fmt.Sprintf("k%d", n), element))
			}
			add("{" + strings.Join(entries, ",") + "}")
			for _, key := range []string{``, ` `, `\u0000`, `é`, `a/b/c`, strings.Repeat("x", 400)} {
				add(`{"` + key + `":` + string(element) + `}`)
			}
			walk(field.AdditionalProperties.Schema, append(path, "x"))
		}
		for _, name := range slices.Sorted(maps.Keys(field.Properties)) {
			property := field.Properties[name]
			walk(&property, append(path, name))
		}
	}
	for _, part := range fieldsOf(d) {
		field := root.Properties[part]
		walk(&field, []string{part})
	}
	return all
}

// put returns an object with a value at a path.
func put(object *unstructured.Unstructured, path []string, raw string) *unstructured.Unstructured {
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(raw), &value); err != nil {
		panic(err)
	}
	changed := object.DeepCopy()
	var at any = changed.Object
	for i, key := range path {
		last := i == len(path)-1
		switch parent := at.(type) {
		case map[string]any:
			if last {
				parent[key] = value
			}
			at = parent[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index >= len(parent) {
				return changed
			}
			if last {
				parent[index] = value
			}
			at = parent[index]
		default:
			return changed // The variant lacks the field.
		}
	}
	return changed
}

// offerWith returns an offer of a provider as a peer writes it, with some cores, in JSON.
func (s *server) offerWith(o *v09.ResourceOffer, name, cores string) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		s.tb.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "sharing.liqo.io", Version: "v1alpha1", Kind: "ResourceOffer"})
	object.SetName(name)
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "metadata", "uid")
	return put(object, []string{"spec", "resourceQuota", "hard", "cpu"}, cores)
}

// takesStock holds that the remote IPAM starts with all that is stored, and knows its consumer.
func (s *server) takesStock(f federation) {
	config, scheme := rest.CopyConfig(s.config), liqotest.Scheme(s.tb)
	lenient.Wrap(config, scheme, logr.Discard())
	objects, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: inventory.CacheOptions()})
	if err != nil {
		s.tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.tb.Context(), decidesIn)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return objects.Start(ctx) })
	store := inventory.NewStore()
	if err := inventory.Watch(ctx, objects, store, logr.Discard()); err != nil {
		s.tb.Errorf("the remote IPAM reads what is stored: %v", err)
	} else if !store.IsConsumer(f.consumer(0).ID) {
		s.tb.Error("the remote IPAM does not know its consumer")
	}
	cancel()
	if err := group.Wait(); err != nil {
		s.tb.Errorf("the cache of the remote IPAM: %v", err)
	}
}

// seesInvalidOffer holds that people see who writes an offer that cannot be read, and that an offer which is good again counts.
func (s *server) seesInvalidOffer(f federation) {
	good := f.offer(1)
	if _, err := s.apply(s.offerWith(good, good.Name, `"1e1.5"`), ""); err != nil {
		s.tb.Fatal(err)
	}
	ready := func() (reason string) {
		var p v1alpha1.Provider
		if !s.has(&p, string(f.provider(1).ID)) {
			return ""
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			reason = c.Reason
		}
		return reason
	}
	s.eventually("an offer that cannot be read is told", func() bool { return ready() == v1alpha1.ReasonInvalidOffer })
	if _, err := s.apply(s.offerWith(good, good.Name, `"64"`), ""); err != nil {
		s.tb.Fatal(err)
	}
	s.eventually("an offer that can be read again counts", func() bool { return ready() == v1alpha1.ReasonOffering })
}

// decides holds that the daemon sees what is good: a policy that changes, and an offer.
func (s *server) decides(f federation, when string) {
	began := time.Now()
	policy := f.policy(0)
	moves, cores := 61+began.UnixNano()%1000, 1+began.UnixNano()%1000
	s.patch(policy, fmt.Sprintf(`{"spec":{"maxMovesPerMinute":%d}}`, moves))
	offer := f.offer(0)
	s.patch(offer, fmt.Sprintf(`{"spec":{"resourceQuota":{"hard":{"cpu":"%d"}}}}`, cores))
	s.eventually("a decision "+when, func() bool {
		var p v1alpha1.PlacementPolicy
		if err := s.client.Get(s.tb.Context(), client.ObjectKeyFromObject(policy), &p); err != nil {
			s.tb.Fatal(err)
		}
		return p.Status.ObservedGeneration == p.Generation && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionDecided) &&
			p.Status.Consumers == 1
	})
	consumer := string(f.consumer(0).ID)
	s.eventually("what is decided "+when, func() bool {
		var p v1alpha1.PlacementPolicy
		var d v1alpha1.PlacementDecision
		if err := s.client.Get(s.tb.Context(), client.ObjectKeyFromObject(policy), &p); err != nil {
			s.tb.Fatal(err)
		}
		return s.has(&d, v1alpha1.DecisionName(p.Name, consumer)) && d.IsOf(&p, consumer) && len(d.Chosen) == 1
	})
	s.eventually("the account of a provider "+when, func() bool {
		var p v1alpha1.Provider
		return s.has(&p, string(f.provider(0).ID)) && p.Status.Measured.Cpu().Value() == cores
	})
	s.tb.Logf("after %s: a decision %s", time.Since(began).Round(time.Millisecond), when)
}

// has reads an object of the cluster that the daemon writes, and says whether the daemon has written it yet.
func (s *server) has(object client.Object, name string) bool {
	err := s.client.Get(s.tb.Context(), client.ObjectKey{Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		s.tb.Fatal(err)
	}
	return err == nil
}

// patch changes a good object.
func (s *server) patch(object client.Object, change string) {
	if err := s.client.Patch(s.tb.Context(), object, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		s.tb.Fatalf("patch %s: %v", object.GetName(), err)
	}
}

// eventually waits for what the daemon or the API server is to reach.
func (s *server) eventually(what string, reached func() bool) {
	for began := time.Now(); !reached(); s.pass(100 * time.Millisecond) {
		if time.Since(began) > decidesIn {
			s.tb.Fatalf("not within %s: %s", decidesIn, what)
		}
	}
}
