// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"
)

// TestRedactWords puts a secret, the word HIDDEN, into texts as programs write them.
func TestRedactWords(t *testing.T) {
	for _, text := range []string{
		"postgres://u:HIDDEN@host/db", "postgres://u:p@HIDDEN@host", "postgres://u:a/HIDDEN@host", "https://HIDDEN@host",
		`password="correct HIDDEN, battery"`, `{"password":"a,HIDDEN"}`, "password: HIDDEN", `{\"token\":\"HIDDEN\"}`,
		"run --password HIDDEN --verbose", "run --token HIDDEN", "run --db-pass=HIDDEN", `run --secret "a HIDDEN"`,
		"Cookie: session=HIDDEN; other=HIDDEN", "Set-Cookie: a=HIDDEN", "Authorization: Digest username=u, response=HIDDEN",
		"authorization: Bearer HIDDENHIDDEN", "SElERERFTg==HIDDEN\nabc=\n-----END RSA PRIVATE KEY-----\nnext",
		"-----BEGIN PRIVATE KEY-----\nHIDDEN",
	} {
		if got := redact(text); strings.Contains(got, "HIDDEN") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, text := range []string{
		"pod liqo/liqo-controller-manager is ready", "https://host:6443/api?limit=500", "--kubelet-image=capacitorset/liqo-broker-vk:v0.1.0",
		"image: registry/app@sha256:abc",
	} {
		if got := redact(text); got != text {
			t.Errorf("%q becomes %q, and has no secret", text, got)
		}
	}
}
