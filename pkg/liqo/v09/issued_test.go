// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

func TestTokenToldTo(t *testing.T) {
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		want        string
	}{
		"Nobody":  {"People gave it to whom they wanted.", nil, "[]"},
		"Empty":   {"All have come.", map[string]string{"brokering.liqo.io/issued-to": ""}, "[]"},
		"Buyers":  {"They were issued it.", map[string]string{"brokering.liqo.io/issued-to": "a,b"}, "[a b]"},
		"Sellers": {"Liqo tells them.", map[string]string{"brokering.liqo.io/told-to": "c"}, "[c]"},
		"Both":    {"Each counts once.", map[string]string{"brokering.liqo.io/issued-to": "b,c", "brokering.liqo.io/told-to": "a,c"}, "[a b c]"},
		"Others":  {"It is about something else.", map[string]string{"brokering.liqo.io/token-spent": "true"}, "[]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{}
			secret.Annotations = tc.annotations
			if got := fmt.Sprint(v09.TokenToldTo(secret)); got != tc.want {
				t.Errorf("%s\nTokenToldTo() = %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
