// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// lookAgain is how often files are looked at: whoever renews a certificate does so days before it ends.
	lookAgain = 10 * time.Second
	// maxFile bounds a file with certificates, in bytes.
	maxFile = 4 << 20
)

// files is what is read from files, and again when they have changed. It may be used concurrently. It looks at the files when it is asked,
// so that it needs no goroutine, and a volume of Kubernetes may replace them as it likes.
type files[T any] struct {
	names []string
	parse func(texts [][]byte) (T, error)
	log   logr.Logger
	clock clock.PassiveClock

	mu      sync.Mutex
	current T
	looked  time.Time
	seen    [sha256.Size]byte // What the files had, be it right or wrong.
	failed  string            // Why they could not be read when they were last looked at.
}

// readFiles reads files for the first time. The error names the file that is wrong.
func readFiles[T any](log logr.Logger, now clock.PassiveClock, parse func([][]byte) (T, error), names ...string) (*files[T], error) {
	f := &files[T]{names: names, parse: parse, log: log, clock: now}
	f.looked = now.Now()
	texts, err := f.readFiles()
	if err == nil {
		f.current, err = parse(texts)
		f.seen = digest(texts)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", strings.Join(names, ", "), err)
	}
	return f, nil
}

// latest returns what the files have. While they are being replaced, or are wrong, it stays as it was, and the log says why, once.
func (f *files[T]) latest() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	if now.Sub(f.looked) < lookAgain {
		return f.current
	}
	f.looked = now
	texts, err := f.readFiles()
	if err != nil {
		if f.failed != err.Error() {
			f.failed = err.Error()
			f.log.Error(err, "Cannot read files that have changed; what they had before stays", "files", f.names)
		}
		return f.current
	}
	f.failed = ""
	sum := digest(texts)
	if sum == f.seen {
		return f.current
	}
	f.seen = sum
	read, err := f.parse(texts)
	if err != nil {
		f.log.Error(err, "Cannot use files that have changed; what they had before stays", "files", f.names)
		return f.current
	}
	f.log.Info("Files have changed and are read again", "files", f.names)
	f.current = read
	return f.current
}

// readFiles reads the texts of the files.
func (f *files[T]) readFiles() ([][]byte, error) {
	texts := make([][]byte, 0, len(f.names))
	for _, name := range f.names {
		text, err := readFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return text, err
}

// digest returns a digest of the texts of files: others have another one.
func digest(texts [][]byte) [sha256.Size]byte {
	each := make([]byte, 0, len(texts)*sha256.Size)
	for _, text := range texts {
		sum := sha256.Sum256(text)
		each = append(each, sum[:]...)
	}
	return sha256.Sum256(each)
}

// parsePair reads a certificate and its key.
func parsePair(texts [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, err
	}
	return &pair, nil
}

// parsePool reads authorities.
func parsePool(texts [][]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bytes.TrimSpace(texts[0])) {
		return nil, errors.New("has no certificate as PEM")
	}
	return pool, nil
}

// ordinary returns the configuration with an ordinary certificate. Clients show one of their key in any case.
func (o *serveOptions) ordinary(log logr.Logger, now clock.PassiveClock) (*tls.Config, error) {
	pair, err := readFiles(log, now, parsePair, o.certFile, o.certKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.latest(), nil },
	}, nil
}

// roots returns what says the authorities of the moment; nil if there are none.
func (o *serveOptions) roots(log logr.Logger, now clock.PassiveClock) (func() *x509.CertPool, error) {
	if o.authorities == "" {
		return nil, nil //nolint:nilnil // Without authorities there is no pool.
	}
	pool, err := readFiles(log, now, parsePool, o.authorities)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	return pool.latest, nil
}
