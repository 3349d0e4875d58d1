// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// lookAgain is how often the files of a certificate are looked at: whoever renews it, does so days before it ends.
const lookAgain = time.Minute

// files is a certificate in files. It may be used concurrently.
type files struct {
	cert, key string

	mu      sync.Mutex
	current *tls.Certificate
	looked  time.Time
	changed time.Time
}

// ordinary returns the configuration with an ordinary certificate. Clients show one of their key in any case.
func (o *serveOptions) ordinary() (*tls.Config, error) {
	f := &files{cert: o.certFile, key: o.certKeyFile}
	if _, err := f.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: f.get, ClientAuth: tls.RequestClientCert}, nil
}

// get returns the certificate. While the files are being replaced, or are wrong, it stays as it was.
func (f *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil && time.Since(f.looked) < lookAgain {
		return f.current, nil
	}
	f.looked = time.Now()
	info, err := os.Stat(f.cert)
	if err == nil && f.current != nil && info.ModTime().Equal(f.changed) {
		return f.current, nil
	}
	if err == nil {
		var read tls.Certificate
		if read, err = tls.LoadX509KeyPair(f.cert, f.key); err == nil {
			f.current, f.changed = &read, info.ModTime()
			return f.current, nil
		}
	}
	if f.current != nil {
		return f.current, nil
	}
	return nil, fmt.Errorf("--tls-cert-file=%s, --tls-private-key-file=%s: %w", f.cert, f.key, err)
}
