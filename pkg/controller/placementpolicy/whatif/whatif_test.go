// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

const header = "apiVersion: brokering.liqo.io/v1alpha1\nkind: PlacementPolicy\n"

// trier tries policies in a world.
func trier(t *testing.T, objects client.Reader, admit Admit) *Trier {
	t.Helper()
	made, err := New(v09.Line{}, objects, admit)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestFaults reads what is wrong, and says where.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, want string
	}{
		"Empty": {"There must be a policy.", "# Nothing\n---\n", "this has no PlacementPolicy"},
		"NotYAML": {
			"The parser knows the line.",
			header + "spec:\n  a: [\n",
			"line 4: this is not YAML: did not find expected node content",
		},
		"Twice": {"A key is there once.", header + "kind: Pod\n", `line 3: this is not YAML: key "kind" already set in map`},
		"Kind": {
			"It is a policy.",
			"# A pod.\napiVersion: v1\nkind: Pod\n",
			`line 3, column 1: kind: this is a Pod of "v1", and not only PlacementPolicies of brokering.liqo.io/v1alpha1 are here`,
		},
		"Scalar": {
			"It is an object.",
			"hello\n",
			`line 1, column 1: kind: this is a  of "", and not only PlacementPolicies of brokering.liqo.io/v1alpha1 are here`,
		},
		"Misspelt": {
			"All fields are known.",
			header + "metadata: {name: a}\nspec:\n  appliesTo: {scope: Default}\n  filter: [x]\n",
			`line 6, column 3: spec.filter: unknown field "spec.filter"`,
		},
		"Type": {
			"Fields have types.", header + "metadata: {name: a}\nspec:\n  appliesTo: {scope: Default}\n  priority: high\n",
			`line 6, column 3: spec.priority: must be of type integer: "string"`,
		},
		"Enum": {
			"Words mean something.", header + "metadata: {name: a}\nspec:\n  appliesTo:\n    scope: Everybody\n",
			`line 6, column 5: spec.appliesTo.scope: should be one of [Default Consumers Namespaces OnRequest]`,
		},
		"Missing": {
			"What must be there is missing.",
			header + "metadata: {name: a}\nspec: {}\n",
			`line 4, column 1: spec.appliesTo: is required`,
		},
		"Many": {
			"Lists are bounded.",
			header + "metadata: {name: a}\nspec:\n  appliesTo: {scope: Default}\n  filters: [" + strings.Repeat("'true', ", 17) + "]\n",
			`line 6, column 3: spec.filters: should have at most 16 items`,
		},
		"Name": {
			"It has a name.",
			header + "metadata: {name: A_b}\nspec: {appliesTo: {scope: Default}}\n",
			"line 3, column 12: metadata.name: a lowercase RFC 1123 subdomain",
		},
		"CEL": {
			"An expression compiles, and else it is said at which letter it does not.",
			"# One\n" + header + "metadata: {name: a}\nspec:\n  appliesTo: {scope: Default}\n  filters:\n  - kpi.x < 1\n  - kpj.x < 1\n",
			"line 9, column 5: spec.filters[1]: filter \"kpj.x < 1\" does not compile: ERROR: undeclared reference to 'kpj' (in container '')",
		},
		"Quoted": {
			"The quote counts.",
			header + "metadata: {name: a}\nspec: {appliesTo: {scope: Default}, filters: ['kpi.x < kpj']}\n",
			"line 4, column 56: spec.filters[0]: filter",
		},
		"Block": {
			"A block begins below.",
			header + "metadata: {name: a}\nspec:\n  appliesTo: {scope: Default}\n  filters:\n  - |-\n    kpi.x <\n    kpj\n",
			"line 9: spec.filters[0]: filter",
		},
		"Two":  {"One is tried at a time.", two, "line 6: one policy is tried at a time"},
		"Long": {"A text is bounded.", strings.Repeat("#", MaxText+1), "it is longer than 65536 bytes"},
		"Bomb": {"What grows is not read.", bomb(), "this is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trier(t, snapshottest.NewClient(t, interceptor.Funcs{}, showntest.World()...), nil).Try(t.Context(), time.Now(), tc.text)
			faults := apiv1.FaultsError(nil)
			if !errors.As(err, &faults) || !strings.HasPrefix(faults.Error(), tc.want) {
				t.Errorf("%s\ngot  %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}

const two = header + "metadata: {name: a}\nspec: {appliesTo: {scope: Default}}\n---\n" + header +
	"spec: {appliesTo: {scope: Default}}\nmetadata: {name: b}\n"

// bomb is a short text whose aliases stand for a long one.
func bomb() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		a := fmt.Sprintf("*a%d", i)
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i+1, i+1, strings.Join(slices.Repeat([]string{a}, 9), ","))
	}
	return text.String()
}

// TestRefusedByTheAPIServer says what the API server does, at the fields that it names.
func TestRefusedByTheAPIServer(t *testing.T) {
	kind := schema.GroupKind{Group: v1alpha1.Group, Kind: "PlacementPolicy"}
	wrong := field.ErrorList{field.Invalid(field.NewPath("spec", "appliesTo"), nil, "leave consumers out")}
	text := header + "metadata: {name: a}\nspec:\n  appliesTo: {scope: Default, consumers: [x]}\n"
	for name, tc := range map[string]struct {
		err  error
		want string
		note string
	}{
		"Invalid":   {apierrors.NewInvalid(kind, "a", wrong), "line 5, column 3: spec.appliesTo: ", ""},
		"Bad":       {apierrors.NewBadRequest("no"), "the API server refuses it: no", ""},
		"Forbidden": {apierrors.NewForbidden(schema.GroupResource{}, "a", nil), "", "You may not write placement policies"},
		"Broken":    {errors.New("broken"), "check placement policy a: broken", ""},
	} {
		t.Run(name, func(t *testing.T) {
			admit := func(context.Context, *v1alpha1.PlacementPolicy) (*v1alpha1.PlacementPolicy, error) {
				return nil, tc.err
			}
			trial, err := trier(t, snapshottest.NewClient(t, interceptor.Funcs{}), admit).Try(t.Context(), time.Now(), text)
			if tc.want == "" {
				if err != nil || !strings.Contains(strings.Join(trial.Notes, " "), tc.note) {
					t.Errorf("%v, %q", err, trial.Notes)
				}
			} else if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// TestTry says what changes: in the world both consumers follow a policy that has chosen Turin, and have a pod on Milan.
func TestTry(t *testing.T) {
	milan := apiv1.Cluster{ID: string(showntest.Milan.ID), Name: showntest.Milan.Name}
	turin := apiv1.Cluster{ID: string(showntest.Turin.ID), Name: showntest.Turin.Name}
	blind, sees := string(showntest.Blind.ID), string(showntest.Sees.ID)
	only := func(id string) string { return `filters: ['id == "` + id + `"']` }
	type one struct {
		consumer            string
		today               []string
		free                bool
		in, out             []apiv1.Cluster
		namespaces, podsOut int
	}
	for name, tc := range map[string]struct {
		reason, name, spec string
		without            bool // There is no policy today.
		want               []one
		dropped            []string
		exists             bool
	}{
		"Same": {
			"It stays as it is.", "cheap", "appliesTo: {scope: Default}, " + only(turin.ID), false,
			[]one{{blind, []string{"cheap"}, false, nil, nil, 1, 0}, {sees, []string{"cheap"}, false, nil, nil, 1, 0}}, nil, true,
		},
		"Other": {
			"Another provider comes in.", "cheap", "appliesTo: {scope: Default}, " + only(milan.ID), false, []one{
				{blind, []string{"cheap"}, false, []apiv1.Cluster{milan}, []apiv1.Cluster{turin}, 1, 0},
				{sees, []string{"cheap"}, false, []apiv1.Cluster{milan}, []apiv1.Cluster{turin}, 1, 0},
			}, nil, true,
		},
		"Narrower": {
			"A policy of a consumer goes before the one of all.",
			"mine", "appliesTo: {scope: Consumers, consumers: [" + sees + "]}", false,
			[]one{{sees, []string{"cheap"}, false, []apiv1.Cluster{milan}, nil, 1, 0}}, nil, false,
		},
		"Shadowed": {
			"One that goes after another applies to nobody.", "zz", "appliesTo: {scope: Default}, " + only(milan.ID), false,
			[]one{{namespaces: -1, podsOut: -1}}, nil, false,
		},
		"First": {
			"Where there was none, all that are ready were in question, and pods are there.",
			"first", "appliesTo: {scope: Default}, " + only(turin.ID), true,
			[]one{
				{blind, nil, true, nil, []apiv1.Cluster{milan}, 1, 1},
				{sees, nil, true, nil, []apiv1.Cluster{milan}, 1, 1},
			}, nil, false,
		},
		"Dropped": {
			"Who is left out is named.",
			"cheap", "appliesTo: {scope: Consumers, consumers: [" + sees + "]}, " + only(turin.ID), false,
			[]one{{sees, []string{"cheap"}, false, nil, nil, 1, 0}}, []string{blind}, true,
		},
		"Nobody": {
			"Without a consumer, one stands for all.", "later", "appliesTo: {scope: Consumers, consumers: [nobody]}", false,
			[]one{{namespaces: -1, podsOut: -1}}, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := showntest.World()
			if tc.without {
				objects = slices.DeleteFunc(objects, func(o client.Object) bool {
					_, policy := o.(*v1alpha1.PlacementPolicy)
					_, decision := o.(*v1alpha1.PlacementDecision)
					return policy || decision
				})
			}
			c := snapshottest.NewClient(t, interceptor.Funcs{}, objects...)
			text := header + "metadata: {name: " + tc.name + "}\nspec: {" + tc.spec + "}\n"
			trial, err := trier(t, c, nil).Try(t.Context(), time.Now(), text)
			if err != nil {
				t.Fatal(err)
			}
			var got []one
			for _, d := range trial.Consumers {
				o := one{d.Decision.Consumer.ID, d.Today, d.Free, d.In, d.Out, -1, -1}
				if d.Namespaces != nil {
					o.namespaces = *d.Namespaces
				}
				if d.PodsOut != nil {
					o.podsOut = *d.PodsOut
				}
				got = append(got, o)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(one{})); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			var dropped []string
			for _, d := range trial.Dropped {
				dropped = append(dropped, d.ID)
			}
			if !slices.Equal(dropped, tc.dropped) || trial.Exists != tc.exists || trial.Policy != tc.name {
				t.Errorf("%s\n%+v", tc.reason, trial)
			}
		})
	}
}

// TestWithoutPods does without the rights to read pods.
func TestWithoutPods(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, pods := list.(*corev1.PodList); pods {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
			}
			return c.List(ctx, list, options...)
		},
	}, showntest.World()...)
	trial, err := trier(t, c, nil).Try(t.Context(), time.Now(), header+"metadata: {name: cheap}\nspec: {appliesTo: {scope: Default}}\n")
	if err != nil || len(trial.Consumers) != 2 || trial.Consumers[0].Namespaces != nil || trial.Consumers[0].PodsOut != nil ||
		!slices.Contains(trial.Notes, noteNoPods) || len(trial.Consumers[0].In) != 1 {
		t.Errorf("%v\n%+v", err, trial)
	}
}

// TestWith tries a policy on what the reader of the moment has, and not on what another one had.
func TestWith(t *testing.T) {
	const text = header + "metadata: {name: a}\nspec: {appliesTo: {scope: Default}}\n"
	there := snapshottest.NewClient(t, interceptor.Funcs{}, &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	first := trier(t, snapshottest.NewClient(t, interceptor.Funcs{}), nil)
	for name, tc := range map[string]struct {
		of   *Trier
		want bool
	}{"First": {first, false}, "Other": {first.With(there), true}} {
		t.Run(name, func(t *testing.T) {
			if trial, err := tc.of.Try(t.Context(), time.Now(), text); err != nil || trial.Exists != tc.want {
				t.Errorf("the policy is there: %t, %v; want %t", trial.Exists, err, tc.want)
			}
		})
	}
}

// TestExamplesAreGood reads the policies that the project gives, and what is written of them again.
func TestExamplesAreGood(t *testing.T) {
	files, err := filepath.Glob("../../../../deploy/examples/placementpolicies/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	of := trier(t, snapshottest.NewClient(t, interceptor.Funcs{}), nil)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read, err := of.Read(text)
		if err != nil || len(read) != 1 {
			t.Fatalf("%s: %d, %v", file, len(read), err)
		}
		p := read[0].Policy
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
		p.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.com/a": "b"}
		p.Status.Summary = "milan"
		again, err := of.Manifest(p)
		if err != nil || strings.Contains(string(again), "managedFields") || strings.Contains(string(again), "status") ||
			strings.Contains(string(again), "last-applied") || !strings.Contains(string(again), "example.com/a: b") {
			t.Errorf("%s: %v\n%s", file, err, again)
		}
		same, err := of.Read(again)
		if err != nil || len(same) != 1 || cmp.Diff(p.Spec, same[0].Policy.Spec) != "" {
			t.Errorf("%s: %v", file, err)
		}
	}
}
