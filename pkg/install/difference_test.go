// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestDryRunShows has dry runs of both kinds change flags: one names the object, the other one shows what becomes otherwise.
func TestDryRunShows(t *testing.T) {
	rest := []string{"--three", "--four", "--five", "--six", "--se\x1bven", "--eight"}
	before := pod("manager", append([]string{"--one", "--two=2>1"}, rest...)...)
	before.ResourceVersion, before.Generation = "1", 1
	for _, tried := range []bool{false, true} {
		after := before.DeepCopy()
		after.ResourceVersion, after.Generation = "2", 2
		after.Spec.Template.Spec.Containers[0].Args = slices.Concat([]string{"--one", "--two=2>3"}, rest, []string{"--nine"})
		var out strings.Builder
		r := runner{out: &out, dryRun: true, tried: tried, timeout: DefaultTimeout}
		c := change{verb: "patch", object: "Deployment liqo/liqo-manager", before: before, after: after, do: func(context.Context) error {
			before.DeepCopyInto(after) // As an API server answers that keeps nothing.
			return nil
		}}
		if err := r.apply(t.Context(), []change{c}); err != nil {
			t.Fatal(err)
		}
		want := "      would patch Deployment liqo/liqo-manager (dry run)\n"
		if tried {
			want = `      would patch Deployment liqo/liqo-manager (server dry run)
        @@ -11,5 +11,5 @@
               - args:
                 - --one
        -        - --two=2>1
        +        - --two=2>3
                 - --three
                 - --four
        @@ -18,4 +18,5 @@
                 - "--se\even"
                 - --eight
        +        - --nine
                 image: liqo/manager:v0.9.4
                 name: manager
`
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("tried %t (-want, +got):\n%s", tried, diff)
		}
	}
}

// TestNoSecretIsShown applies what differs from what is there: of a Secret nothing is told.
func TestNoSecretIsShown(t *testing.T) {
	for kind, shown := range map[string]bool{"ConfigMap": true, "Secret": false} {
		of := metav1.ObjectMeta{Namespace: "some", Name: "thing"}
		objects := map[string]client.Object{"ConfigMap": &corev1.ConfigMap{ObjectMeta: of}, "Secret": &corev1.Secret{ObjectMeta: of}}
		wanted, err := decode(fmt.Appendf(nil, "{apiVersion: v1, kind: %s, metadata: {namespace: some, name: thing}, data: {k: djE=}}", kind))
		if err != nil {
			t.Fatal(err)
		}
		o := at(t, line09{}, interceptor.Funcs{Patch: func(
			context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption,
		) error {
			return nil
		}}, objects[kind])
		var out strings.Builder
		i, err := New(o, Options{DryRun: true, Tried: true}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.run.runSteps(t.Context(), []step{i.applying("apply it", wanted, nil)}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "would update "+kind+" some/thing") || strings.Contains(out.String(), "k: djE=") != shown {
			t.Errorf("of a %s is printed:\n%s", kind, out.String())
		}
	}
}

// TestCompareLines makes texts of texts, by as few changes as possible.
func TestCompareLines(t *testing.T) {
	for _, tc := range []struct{ was, is, want string }{
		{"", "", ""}, {"a", "a", " a"}, {"", "a", "+a"}, {"a", "", "-a"}, {"abc", "abxc", " a b+x c"}, {"abc", "bc", "-a b c"},
		{"abcabba", "cbabac", "-a-b c-a b+a b a+c"}, {"ab", "cd", "-a-b+c+d"},
	} {
		var got strings.Builder
		split := func(text string) []string {
			return slices.DeleteFunc(strings.Split(text, ""), func(s string) bool { return s == "" })
		}
		for _, line := range compareLines(split(tc.was), split(tc.is)) {
			fmt.Fprintf(&got, "%c%s", line.mark, line.text)
		}
		if got.String() != tc.want {
			t.Errorf("%q becomes %q by %q, want %q", tc.was, tc.is, got.String(), tc.want)
		}
	}
}
