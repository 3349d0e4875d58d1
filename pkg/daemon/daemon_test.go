// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

func TestNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if _, err := Namespace(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("outside of a pod: %v", err)
	}
	if err := os.WriteFile(file, []byte("own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if own, err := Namespace(file); own != "own" || err != nil {
		t.Errorf("got %q, %v", own, err)
	}
}

func TestKinds(t *testing.T) {
	broken := errors.New("broken")
	if _, err := Kinds(func(*runtime.Scheme) error { return broken }); !errors.Is(err, broken) || !strings.Contains(err.Error(), "register") {
		t.Errorf("got %v", err)
	}
	scheme, err := Kinds()
	if err != nil || !scheme.Recognizes(corev1.SchemeGroupVersion.WithKind("Pod")) {
		t.Errorf("Kinds(): %v, %v", scheme, err)
	}
}

func TestCalls(t *testing.T) {
	scheme, err := Kinds()
	if err != nil {
		t.Fatal(err)
	}
	given := &rest.Config{Host: "api"}
	own := Calls(given, 5, 10, scheme, logr.Discard())
	if own.Host != "api" || own.QPS != 5 || own.Burst != 10 || own.WrapTransport == nil {
		t.Errorf("got %+v", own)
	}
	if given.QPS != 0 || given.WrapTransport != nil {
		t.Errorf("the config that was given has changed: %+v", given)
	}
}
