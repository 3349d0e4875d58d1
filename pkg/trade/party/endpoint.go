// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"fmt"
	"net/url"
)

// ParseEndpoint returns where somebody answers: https://HOST[:PORT][/PATH], with nothing in it that might be secret. The error is
// ErrDocument, and repeats nothing of the text.
func ParseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("it is not https://HOST[:PORT][/PATH]: %w", ErrDocument)
	}
	return u, nil
}
