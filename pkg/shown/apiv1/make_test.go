// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// TestStatusOf tells of a broker of which there is nothing, not even a daemon: whoever reads it gets lists without anything in them.
func TestStatusOf(t *testing.T) {
	text, err := json.Marshal(StatusOf(&overview.Status{}))
	if err != nil || strings.Contains(string(text), "null") || !strings.Contains(string(text), `"modes":[],`) {
		t.Errorf("it is told as %s, %v", text, err)
	}
}
