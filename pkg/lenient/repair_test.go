// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
)

// FuzzAnswer holds that every object which is passed on can be decoded, whatever the API server has.
func FuzzAnswer(f *testing.F) {
	const provider = `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"Provider","metadata":{"name":"p","labels":{"a":"b"}},"spec":`
	for _, seed := range []string{
		provider + `{"price":{"currency":"EUR","period":"1","cpu":"1e1.5"},"capacity":{"declared":{"cpu":null,"":"1e9999999"}}}}`,
		provider + `{"carbon":{"measuredTime":"2020-13-01T00:00:00Z","intensity":{}},"scheduling":7}}`,
		provider + `{"capacity":{"sharePercent":1e99}},"status":{"conditions":[{"type":1},2,null],"kpis":{}}}`,
		`{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"ProviderList","items":[` + provider + `7},{}]}`,
		`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"creationTimestamp":"x"},"spec":{"scopes":3}}`,
		`{"apiVersion":"meta.k8s.io/v1","kind":"APIResourceList","resources":[]}`,
		`{"apiVersion":"v1","kind":"Status","code":"404"}`,
		`[]`, `{"kind":7}`, ``,
	} {
		f.Add([]byte(seed))
	}
	scheme := kinds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		answer := lenient.Answer(scheme, body)
		if again := lenient.Answer(scheme, answer); !bytes.Equal(again, answer) {
			t.Errorf("repaired once:  %s\nrepaired twice: %s", answer, again)
		}
		var object struct {
			APIVersion string          `json:"apiVersion"`
			Kind       string          `json:"kind"`
			Metadata   json.RawMessage `json:"metadata"`
		}
		if json.Unmarshal(answer, &object) != nil || len(object.Metadata) == 0 {
			return
		}
		typed, err := scheme.New(schema.FromAPIVersionAndKind(object.APIVersion, object.Kind))
		if runtime.IsNotRegisteredError(err) || err != nil {
			return
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(answer, typed); err != nil && !bytes.Equal(answer, body) {
			t.Errorf("repaired %s to %s: %v", body, answer, err)
		}
	})
}

func TestCheck(t *testing.T) {
	for cpu, want := range map[string]string{
		"4": "", "1e1.5": "spec.capacity.declared[cpu]", "1e-2147483647": "spec.capacity.declared[cpu]",
	} {
		err := lenient.Check([]byte(declared(cpu)), &v1alpha1.Provider{})
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Check() of %s cores: %v", cpu, err)
		}
	}
	if err := lenient.Check([]byte(`[]`), &v1alpha1.Provider{}); err == nil {
		t.Error("a list fits")
	}
}
