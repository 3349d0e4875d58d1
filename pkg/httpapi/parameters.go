// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/url"
)

// maxQuery bounds the parameters of a request, in bytes.
const maxQuery = 1 << 10

// parseQuery reads parameters that are not too long.
func parseQuery(rawQuery string) (url.Values, error) {
	if len(rawQuery) > maxQuery {
		return nil, fmt.Errorf("the parameters are longer than %d bytes", maxQuery)
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	return query, nil
}

// one returns a parameter that must be given exactly once.
func one(query url.Values, name string) (string, error) {
	switch values := query[name]; {
	case len(values) > 1:
		return "", fmt.Errorf("the parameter %s is given %d times", name, len(values))
	case len(values) == 0 || values[0] == "":
		return "", fmt.Errorf("the parameter %s is missing", name)
	default:
		return values[0], nil
	}
}
