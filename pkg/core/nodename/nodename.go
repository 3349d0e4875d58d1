// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodename names the virtual nodes that consumers have of single providers,
// and recognises them by these names.
//
// It knows neither what such a node offers nor how pods get to the provider.
package nodename

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

const (
	// most is the length of a label's value, which the name of a virtual node
	// becomes in several places.
	most   = 63
	prefix = "liqo-"
	// MaxOfSlice is how long the name of a ResourceSlice of Liqo 1.x may be: a certificate has room for 64 characters, and Liqo appends 13.
	MaxOfSlice = 50
	// markBytes are few enough for a name, and too many to make a cluster ID whose
	// mark is that of another cluster.
	markBytes = 10
)

// pattern matches the names of all these nodes, and hardly another node's.
var pattern = regexp.MustCompile(`^liqo-[a-z0-9-]+-[a-z2-7]{16}$`)

// lower is base32 in small letters, as names need it.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Mark returns the last part of the names of the nodes that stand for a provider of
// a broker. It does not depend on what the clusters are called.
func Mark(broker, provider cluster.ID) string {
	seed := binary.BigEndian.AppendUint64(nil, uint64(len(broker)))
	sum := sha256.Sum256([]byte(string(seed) + string(broker) + string(provider)))
	return lower.EncodeToString(sum[:markBytes])
}

// Name returns the name of the node that stands for a provider of a broker. What
// the provider calls itself may be any text; people are to recognise it.
func Name(broker cluster.ID, provider cluster.Identity) string { return named(broker, provider, most) }

// OfSlice returns the same name, cut so that a ResourceSlice of Liqo 1.x can have it.
func OfSlice(broker cluster.ID, provider cluster.Identity) string {
	return named(broker, provider, MaxOfSlice)
}

// named returns the name of the node that stands for a provider of a broker, which is not longer than it may be.
func named(broker cluster.ID, provider cluster.Identity, most int) string {
	mark := Mark(broker, provider.ID)
	word := legal(provider.Name)
	if room := most - len(prefix) - len("-") - len(mark); len(word) > room {
		word = strings.TrimRight(word[:room], "-")
	}
	if word == "" {
		word = "provider"
	}
	return prefix + word + "-" + mark
}

// errName says what a name is not.
var errName = errors.New("is not the name of its node")

// CheckOfSlice returns why a ResourceSlice that is called so is not for the node that stands for a provider of a broker; nil if it is. Who
// names it may be hostile: it cannot name what is called otherwise.
func CheckOfSlice(name string, broker, provider cluster.ID) error {
	if mark, is := MarkOf(name); !is || len(name) > MaxOfSlice || mark != Mark(broker, provider) {
		return fmt.Errorf("%.*q of provider %.*q %w", most, name, most, provider, errName)
	}
	return nil
}

// legal returns the small letters and digits of a text, with a dash for each run of
// others between them.
func legal(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimRight(b.String(), "-")
}

// MarkOf returns the mark of a name. A name without one is no pool's.
func MarkOf(name string) (mark string, ok bool) {
	if len(name) > most || !pattern.MatchString(name) {
		return "", false
	}
	return name[strings.LastIndexByte(name, '-')+1:], true
}
