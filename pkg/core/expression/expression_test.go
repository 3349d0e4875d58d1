// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
)

func environment(tb testing.TB) *cel.Env {
	tb.Helper()
	env, err := cel.NewEnv(
		cel.ParserRecursionLimit(32),
		cel.CrossTypeNumericComparisons(true),
		cel.Variable("name", cel.StringType),
		cel.Variable("names", cel.ListType(cel.StringType)),
		cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("kpis", cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
	)
	if err != nil {
		tb.Fatal(err)
	}
	return env
}

func TestCompile(t *testing.T) {
	env := environment(t)
	for name, text := range map[string]string{
		"Comparison":     `name == "a" && names != []`,
		"Literals":       `name in ["a", "b"] && {"a": 1}[name] == 1`,
		"Exists":         `kpis.exists(k, k.name == "a" && k.value >= 0.9 && k.unit in ["ms", "s"])`,
		"All":            `["a", "b"].all(a, a in names)`,
		"One":            `names.exists_one(n, n.startsWith("a"))`,
		"Filter":         `kpis.filter(k, k.name == "a").all(k, k.value > 1.0) && names.filter(n, n > "a").size() > 1`,
		"Nested":         `["a", "b"].all(a, kpis.exists(k, k.name == a))`,
		"Given":          `[name, labels["a"]].exists(v, v == "b")`,
		"GivenInside":    `kpis.exists(k, k.name in [name, "a"])`,
		"Has":            `has(labels.a)`,
		"SameNameBeside": `[names.exists(a, a == "b"), true].all(b, b)`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(env, text); err != nil {
				t.Errorf("Compile(%q) error = %v", text, err)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	env := environment(t)
	chain := func(steps int, step string) string { return "[1]" + strings.Repeat(step, steps) + ".size() == 1" }
	for name, text := range map[string]string{
		"MapOfMaps":       chain(28, `.map(a, {a: a})`),
		"ListOfLists":     chain(28, `.map(a, [a, a])`), // Its values double, though its type does not.
		"ListOfMaps":      chain(20, `.map(a, [1, 2].map(b, a))`),
		"Map":             `kpis.map(k, k.value).exists(v, v > 1.0)`,
		"MapSome":         `kpis.map(k, k.name == "a", k.value).exists(v, v > 1.0)`,
		"LiteralOfEach":   `names.exists(a, [{a: a}].exists(b, [{b: b}].exists(c, c == c)))`,
		"EmptyList":       `[].exists(a, [].exists(b, b[a] == a && [].exists(c, c[b] == b)))`,
		"EmptyInside":     `names.exists(a, [] == [])`,
		"EmptyMapInside":  `[{}].exists(a, a == a)`,
		"Accumulator":     `names.filter(a, (__result__ + __result__).size() < 1).size() > 0`,
		"Message":         `names.exists(a, google.protobuf.Value{string_value: a} == a)`,
		"HiddenByDyn":     `[1].map(a, dyn([a, a])).size() == 1`,
		"InACondition":    `names.exists(a, a == "b" ? [a, a] == names : true)`,
		"InACall":         `names.exists(a, size([a, a]) == 2)`,
		"OfOuter":         `names.exists(a, names.exists(b, [a] == names))`,
		"OfInner":         `names.exists(a, [names.exists(b, b == a)] == [true])`,
		"InWhatItGoesOn":  `names.exists(a, [a].exists(b, b == a))`,
		"FilterOfLiteral": `names.exists(a, [a].filter(b, b == a).size() > 0)`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(env, text); !errors.Is(err, ErrBuilds) {
				t.Errorf("Compile(%q) error = %v, want %v", text, err, ErrBuilds)
			}
		})
	}
	for text, want := range map[string]string{`name ==`: "Syntax error", `nam == "a"`: "undeclared", `name`: "is a string, not a bool"} {
		if _, err := Compile(env, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%q) error = %v, want one with %q", text, err, want)
		}
	}
}

// FuzzTypes compiles expressions that nest and chain what CEL can build, and checks that no type is larger than the expression: those that
// double are, long before they take time that can be noticed.
func FuzzTypes(f *testing.F) {
	env := environment(f)
	for seed := range uint64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		text := structure(rand.New(rand.NewPCG(seed, 0)))
		compiled, err := Compile(env, text)
		if err != nil {
			return
		}
		checked, err := cel.AstToCheckedExpr(compiled)
		if err != nil {
			t.Fatal(err)
		}
		nodes := len(checked.GetTypeMap())
		for _, of := range checked.GetTypeMap() {
			if size := sizeOf(of, nodes+8); size > nodes+4 { // The type of kpis has 4.
				t.Fatalf("%q has %d nodes, and a type of %d parts or more", text, nodes, size)
			}
		}
	})
}

// structure writes an expression of literals and macros within each other and in turn, which use each other's variables. One of them it
// likes best.
func structure(random *rand.Rand) string {
	const deepest, kinds = 9, 12 // What doubles with each step has 512 parts then.
	favourite := random.IntN(kinds)
	var value func(depth int, names []string) string
	value = func(depth int, names []string) string {
		pick := func() string { return names[random.IntN(len(names))] }
		if depth == 0 {
			return pick()
		}
		x := fmt.Sprintf("x%d", len(names))
		inner := slices.Concat(names, []string{x, x, x}) // The newest is used most.
		in := value(depth-1, names)
		kind := favourite
		if random.IntN(4) == 0 {
			kind = random.IntN(kinds)
		}
		switch kind {
		case 0:
			return fmt.Sprintf("[%s, %s]", in, pick())
		case 1:
			return fmt.Sprintf("{%s: %s}", pick(), pick())
		case 2:
			return fmt.Sprintf("[%s].map(%s, {%s: %s})", in, x, x, x)
		case 3:
			return fmt.Sprintf("[%s].filter(%s, %s == %s)", in, x, value(depth-1, inner), x)
		case 4:
			return fmt.Sprintf("[{}].filter(%s, %s[%s] == %s)", x, x, in, in)
		case 5:
			return fmt.Sprintf("[].filter(%s, %s[%s] == %s && %s == %s)", x, x, pick(), pick(), x, value(depth-1, inner))
		case 6:
			return fmt.Sprintf("([%s] + [%s])", in, pick())
		case 7:
			return fmt.Sprintf("(true ? %s : %s)", in, pick())
		case 8:
			return fmt.Sprintf("[{%s: %s}].exists(%s, %s == %s)", pick(), pick(), x, x, value(depth-1, inner))
		case 9:
			return fmt.Sprintf("{1: %s}.filter(%s, %s in [1])", in, x, x)
		case 10:
			return fmt.Sprintf("%s.map(%s, true, [%s, %s])", in, x, x, x)
		default:
			return fmt.Sprintf("[[%s]].all(%s, %s == %s)", in, x, x, value(depth-1, inner))
		}
	}
	v := value(1+random.IntN(deepest), []string{"names", "labels", "1", "kpis"})
	return fmt.Sprintf("%s == %s", v, v)
}

// sizeOf counts the parts of a type, up to a bound.
func sizeOf(of *expr.Type, most int) int {
	n := 1
	var parts []*expr.Type
	switch kind := of.GetTypeKind().(type) {
	case *expr.Type_ListType_:
		parts = []*expr.Type{kind.ListType.GetElemType()}
	case *expr.Type_MapType_:
		parts = []*expr.Type{kind.MapType.GetKeyType(), kind.MapType.GetValueType()}
	case *expr.Type_Type:
		parts = []*expr.Type{kind.Type}
	}
	for _, part := range parts {
		if n < most {
			n += sizeOf(part, most-n)
		}
	}
	return n
}

// BenchmarkCompile is the dearest that was found of the longest that a registry takes.
func BenchmarkCompile(b *testing.B) {
	env := environment(b)
	filters, lists := "names", strings.Repeat("[", 30)+"1"+strings.Repeat("]", 30)
	for range 25 {
		filters += ".filter(a,true)"
	}
	for name, text := range map[string]string{
		"Filters": filters + " == names",
		"Lists":   strings.Repeat(lists+"=="+lists+"&&", 8) + "true",
		"Calls":   strings.Repeat("[name]+", 25) + "[] == []",
		"Exists":  strings.Repeat("names.exists(a,", 15) + "true" + strings.Repeat(")", 15),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Compile(env, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
