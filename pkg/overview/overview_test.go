// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// FuzzNames shows clusters with whatever name: nothing of it may be obeyed by a terminal, and all tables keep their shape.
func FuzzNames(f *testing.F) {
	const most = 1024
	f.Add("milan", "\x1b]0;owned\x07")
	f.Fuzz(func(t *testing.T, name, message string) {
		p := v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "id"}}
		p.Status.ClusterName = name
		p.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoOffer, Message: message},
		}
		status := Summarize(Observed{Liqo: v09.Line{}, Providers: []v1alpha1.Provider{p}})
		shown := []string{(&UnknownError{Known: []cluster.Identity{ProviderIdentity(&p)}}).Error()}
		for _, row := range Providers(now, []v1alpha1.Provider{p}).Rows {
			for _, cell := range row.Cells {
				shown = append(shown, fmt.Sprint(cell))
			}
		}
		for _, finding := range status.Next {
			shown = append(shown, finding.What, finding.Do)
		}
		for _, text := range shown {
			if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || len(text) > most {
				t.Errorf("%q", text)
			}
		}
	})
}

func TestFind(t *testing.T) {
	clusters := []cluster.Identity{
		{ID: "aa11", Name: "milan"}, {ID: "aa22", Name: "milano"}, {ID: "bb11", Name: "twin"}, {ID: "bb22", Name: "twin"},
		{ID: "cc", Name: "aa11"}, {ID: "dd"},
	}
	for text, want := range map[string]string{
		"aa11": "aa11", // An ID goes before a name.
		"aa2":  "aa22", "milan": "milan", "milano": "milano", "bb2": "bb22", "d": "dd",
		"mila": "milan (aa11), milano (aa22)", "aa": "aa11 (cc), milan (aa11), milano (aa22)", "twin": "twin (bb11), twin (bb22)",
		"": "unknown", "x": "unknown",
	} {
		found, err := Find(clusters, text)
		var ambiguous *AmbiguousError
		var unknown *UnknownError
		switch {
		case errors.As(err, &ambiguous):
			if got := list(ambiguous.Candidates); got != want {
				t.Errorf("%q can mean %s, not %s", text, got, want)
			}
		case errors.As(err, &unknown):
			if want != "unknown" {
				t.Errorf("%q is unknown", text)
			}
		case string(found.ID) != want && found.Name != want:
			t.Errorf("%q means %s", text, found)
		}
	}
	many := make([]cluster.Identity, 500)
	for i := range many {
		many[i].ID = cluster.ID(fmt.Sprintf("%0200d", i))
	}
	if _, err := Find(many, "0"); err == nil || len(err.Error()) > 4096 || !strings.HasSuffix(err.Error(), "and 490 more") {
		t.Errorf("of many: %v", err)
	}
}
