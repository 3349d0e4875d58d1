// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery is how people find a registry: by an invitation that its operator gives them, by records of a domain in the DNS, and
// by what registries announce in the local network (RFC 6763). What others say is bounded and checked, and is no more than a proposal.
//
// It does not know who decides whether that is the registry that was meant, and calls none.
package discovery

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// Service is the name of the service under which registries are found in a domain (RFC 6763, section 4.1).
const Service = "_liqo-registry._tcp"

const (
	// maxURL is what a Registry of Kubernetes takes, and maxToken what a registry does, both in bytes.
	maxURL, maxToken = 512, 256
	// fingerprintLength is how many letters a fingerprint has.
	fingerprintLength = 52
	// maxLabel and maxName are how long a part of a name, and all of it, may be (RFC 1035, section 2.3.4).
	maxLabel, maxName = 63, 253
	// standardPort is left out of URLs.
	standardPort = 443
)

// Found is a registry, as somebody who need not be believed says.
type Found struct {
	// Name is what the registry is called where it was found: letters, digits and hyphens.
	Name string
	// URL is where it is, and Fingerprint that of its key; empty if it shows an ordinary certificate.
	URL, Fingerprint string
	// Validated says that a resolver which is trusted has validated all records by DNSSEC.
	Validated bool
}

// CheckURL returns an error unless a text is a URL that a Registry may have.
func CheckURL(text string) error {
	if len(text) > maxURL {
		return fmt.Errorf("it has more than %d bytes", maxURL)
	}
	if !visible(text) {
		return errors.New("it has a character that no URL has, or a comma")
	}
	u, err := party.ParseEndpoint(text)
	if err != nil {
		return errors.New("it is not https://HOST[:PORT][/PATH]")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%.10s is no port", port)
		}
	}
	return nil
}

// CheckFingerprint returns an error unless a text has the form of a fingerprint.
func CheckFingerprint(text string) error {
	alien := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') }
	if len(text) != fingerprintLength || strings.ContainsFunc(text, alien) {
		return fmt.Errorf("%.60q is no fingerprint, which has %d of the characters a-z and 2-7", text, fingerprintLength)
	}
	return nil
}

// CheckToken returns an error unless a text may be an enrolment token. The error has nothing of it.
func CheckToken(text string) error {
	if text == "" || len(text) > maxToken || !visible(text) {
		return fmt.Errorf("it is no token, which has at most %d visible characters, and no comma", maxToken)
	}
	return nil
}

// visible reports whether a text has nothing but visible characters of ASCII, without the comma that separates the parts of an invitation.
func visible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' })
}

// address returns a URL without a path.
func address(host string, port uint16) string {
	if port == standardPort {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return (&url.URL{Scheme: "https", Host: host}).String()
	}
	return (&url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}).String()
}

// isLabel reports whether a text can be part of the name of a host: letters, digits and hyphens, which are not at its ends.
func isLabel(text string) bool {
	alien := func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	return text != "" && len(text) <= maxLabel && !strings.HasPrefix(text, "-") && !strings.HasSuffix(text, "-") &&
		!strings.ContainsFunc(text, alien)
}

// CheckDomain returns an error unless a text is the name of a domain with at least two parts, the last of which is no number, and none that
// only one machine or one cluster knows.
func CheckDomain(text string) error {
	labels := strings.Split(strings.TrimSuffix(strings.ToLower(text), "."), ".")
	for _, label := range labels {
		if !isLabel(label) {
			return fmt.Errorf("%.80q is no name of a domain", text)
		}
	}
	last := labels[len(labels)-1]
	_, errNumber := strconv.Atoi(last)
	_, errAddress := netip.ParseAddr(text)
	switch {
	case len(text) > maxName:
		return fmt.Errorf("%.80q... is longer than the name of a domain", text)
	case errAddress == nil, errNumber == nil:
		return fmt.Errorf("%.80q is an address, and no name", text)
	case len(labels) < 2, last == "localhost", last == "local", last == "svc", strings.HasSuffix(strings.Join(labels, "."), ".cluster.local"):
		return fmt.Errorf("%.80q is a name that not everybody knows", text)
	}
	return nil
}
