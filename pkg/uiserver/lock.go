// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package uiserver

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

// CodeLife is for how long a code can be exchanged.
const CodeLife = time.Minute

// maxKeys bounds the keys that count, one for each tab: the oldest ends.
const maxKeys = 32

// lock gives keys for codes. Of both it keeps the hashes alone, which are compared instead: how long that takes tells nothing of them.
type lock struct {
	now func() time.Time

	mu      sync.Mutex
	current [sha256.Size]byte // The hash of the code; zero for none.
	until   time.Time
	keys    [][sha256.Size]byte // The oldest first.
}

// code returns a new code, in the place of the one before.
func (l *lock) code() string {
	code := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.until = sha256.Sum256([]byte(code)), l.now().Add(CodeLife)
	return code
}

// exchange returns a key for a code; false if the code does not count, or not any more.
func (l *lock) exchange(code string) (key string, ok bool) {
	hash := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() || hash != l.current || !l.now().Before(l.until) {
		return "", false
	}
	l.current, l.until = [sha256.Size]byte{}, time.Time{}
	key = rand.Text()
	if len(l.keys) == maxKeys {
		l.keys = l.keys[1:]
	}
	l.keys = append(l.keys, sha256.Sum256([]byte(key)))
	return key, true
}

// opens reports whether a key counts.
func (l *lock) opens(key string) bool {
	hash := sha256.Sum256([]byte(key))
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.keys, hash)
}
