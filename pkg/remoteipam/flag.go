// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteipam

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Servers is the value of the flag --remote-ipam: where remote IPAMs are
// reached, each as host:port. The flag may be given several times; the zero
// value means that it was not given.
type Servers []string

// Set parses one value of the flag: key=value pairs, separated by commas or
// semicolons. Semicolons are there because Liqo splits --kubelet-extra-args,
// through which the value travels, at its commas.
//
// The only key is server, whose value is HOST or HOST:PORT.
func (s *Servers) Set(value string) error {
	server := ""
	for pair := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ';' }) {
		key, val, ok := strings.Cut(pair, "=")
		switch {
		case !ok:
			return fmt.Errorf("%q is not key=value; use server=HOST[:PORT]", pair)
		case key != "server":
			return fmt.Errorf("unknown key %q; use server=HOST[:PORT]", key)
		case server != "":
			return fmt.Errorf("server is given twice; repeat the flag for a second server")
		}
		address, err := parseServer(val)
		if err != nil {
			return err
		}
		server = address
	}
	if server == "" {
		return fmt.Errorf("no server; use server=HOST[:PORT]")
	}
	*s = append(*s, server)
	return nil
}

// String returns the servers as they were parsed.
func (s *Servers) String() string { return strings.Join(*s, ";") }

// Type names the value in the help of the flag.
func (*Servers) Type() string { return "server=HOST[:PORT]" }

func parseServer(value string) (string, error) {
	host, port := value, strconv.Itoa(Port)
	if strings.Contains(value, ":") && net.ParseIP(value) == nil {
		var err error
		if host, port, err = net.SplitHostPort(value); err != nil {
			return "", fmt.Errorf("server %q is not HOST[:PORT]: %w", value, err)
		}
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", fmt.Errorf("port %q of server %q is not a number from 1 to 65535", port, value)
	}
	if net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
		return "", fmt.Errorf("host %q of server %q is neither a DNS name nor an IP address", host, value)
	}
	return net.JoinHostPort(host, port), nil
}
