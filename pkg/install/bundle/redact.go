// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// masked stands where something was left out.
const masked = "REDACTED"

type labelSet = labels.Set

// secretName matches the names of what is likely to hold a secret.
var secretName = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|auth(orization)?$|bearer|cookie|kubeconfig|dockercfg|client[-_.]?key|htpasswd)`)

// notSecret are names that match, and hold names of objects or switches.
var notSecret = map[string]bool{
	"automountserviceaccounttoken": true, "serviceaccounttoken": true, "secretname": true, "imagepullsecrets": true, "tokenreviews": true,
	"secretref": true, "secretkeyref": true, "kubeconfigsecretref": true,
}

// patterns are texts that look like secrets, wherever they stand, with what is put in their place.
var patterns = []struct {
	is   *regexp.Regexp
	with string
}{
	// A key, or the rest of one whose end is missing.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), masked},
	// The rest of one whose beginning is missing, because only the end of a log is taken.
	{regexp.MustCompile(`\A[A-Za-z0-9+/=\s]*-----END [A-Z0-9 ]*PRIVATE KEY-----`), masked},
	// The same, encoded in base64 ("-----BEGIN " in its three positions is not told apart from certificates, which go too).
	{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*`), masked},
	// A JSON Web Token, signed or not.
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?`), masked},
	// Headers, as far as the line goes.
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(\\?["']?[ \t]*:[ \t]*\\?["']?)[^\r\n"']+`), "${1}${2}" + masked},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`), "$1 " + masked},
	// Users and passwords in URLs.
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s"']*@`), "${1}" + masked + "@"},
	// Flags, with the value in the next word or in quotes.
	{regexp.MustCompile(`(?i)(--?[a-z0-9-]*(?:pass|password|secret|token|api-?key)[ =]+)("[^"]*"|'[^']*'|[^\s"'-][^\s"']*)`), "${1}" + masked},
	// NAME="VALUE", "NAME":"VALUE" with a name that tells, and then NAME=VALUE and NAME: VALUE.
	{regexp.MustCompile(`(?i)([A-Za-z0-9_.-]*(?:password|passwd|passphrase|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|client[-_]?key)[A-Za-z0-9_.-]*\\?["']?[ \t]*[=:][ \t]*")[^"]+`), "${1}" + masked},
	{regexp.MustCompile(`(?i)([A-Za-z0-9_.-]*(?:password|passwd|passphrase|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|client[-_]?key|authorization)[A-Za-z0-9_.-]*\\?["']?[ \t]*[=:][ \t]*\\?["']?)[^\s"',;&\\}]+`), "${1}" + masked},
}

// redact returns a text without what looks like a secret.
func redact(text string) string {
	for _, p := range patterns {
		text = p.is.ReplaceAllString(text, p.with)
	}
	return text
}

// clean returns an object without bookkeeping, and without what looks like a secret in it.
func clean(object map[string]any) map[string]any {
	cleaned, _ := scrub(object, "").(map[string]any)
	if m, is := cleaned["metadata"].(map[string]any); is {
		delete(m, "managedFields")
		if annotations, is := m["annotations"].(map[string]any); is {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
	return cleaned
}

// scrub returns a value of a name without what looks like a secret.
func scrub(value any, name string) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		variable, _ := value["name"].(string)
		for key, inner := range value {
			if _, text := inner.(string); text && key == "value" && tells(variable) {
				kept[key] = masked // An environment variable.
				continue
			}
			kept[key] = scrub(inner, key)
		}
		return kept
	case []any:
		kept := make([]any, 0, len(value))
		for n, inner := range value {
			text, is := inner.(string)
			if before, _ := at(value, n-1).(string); is && strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && tells(before) &&
				!strings.HasPrefix(text, "-") {
				kept = append(kept, masked) // The value of the flag before it.
				continue
			}
			kept = append(kept, scrub(inner, name))
		}
		return kept
	case string:
		if tells(name) {
			return masked
		}
		if flag, _, is := strings.Cut(value, "="); is && strings.HasPrefix(flag, "-") && tells(flag) {
			return flag + "=" + masked
		}
		return redact(value)
	default:
		return value
	}
}

func at(list []any, n int) any {
	if n < 0 {
		return nil
	}
	return list[n]
}

// tells reports whether a name is that of a secret.
func tells(name string) bool {
	return secretName.MatchString(name) && !notSecret[strings.ToLower(name)]
}
