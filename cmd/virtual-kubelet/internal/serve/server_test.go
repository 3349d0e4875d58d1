// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"k8s.io/apimachinery/pkg/util/httpstream"
	utilexec "k8s.io/utils/exec"
)

func TestDropUnservedProtocols(t *testing.T) {
	cases := map[string]struct {
		reason  string
		offered []string
		want    []string
	}{
		"Kubernetes134": {"kube-apiserver 1.34 offers each version in a line of its own",
			[]string{"v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io"}, []string{"v4.channel.k8s.io,v3.channel.k8s.io"}},
		"Kubernetes128": {
			"an older one offers no v5", []string{"v4.channel.k8s.io", "v3.channel.k8s.io"}, []string{"v4.channel.k8s.io,v3.channel.k8s.io"},
		},
		"OneLine":     {"a proxy may have joined the lines", []string{"v5.channel.k8s.io, v4.channel.k8s.io"}, []string{"v4.channel.k8s.io"}},
		"PortForward": {"other protocols pass", []string{"portforward.k8s.io"}, []string{"portforward.k8s.io"}},
		"None":        {"logs negotiate nothing", nil, nil},
		"OnlyV5":      {"the handler below would agree on what it cannot speak", []string{"v5.channel.k8s.io"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/exec/ns/pod/container", http.NoBody)
			for _, line := range tc.offered {
				request.Header.Add(httpstream.HeaderProtocolVersion, line)
			}
			var got []string
			dropUnservedProtocols(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r.Header.Values(httpstream.HeaderProtocolVersion)
			})).ServeHTTP(httptest.NewRecorder(), request)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWithExitCode(t *testing.T) {
	other := errors.New("the connection broke")
	cases := map[string]struct {
		reason string
		err    error
		want   error
	}{
		"ExitCode": {
			"Liqo wraps the exit code", fmt.Errorf("failed to execute command: %w", utilexec.CodeExitError{Code: 7}),
			utilexec.CodeExitError{Code: 7},
		},
		"Other": {"any other error stays as it is", other, other},
		"None":  {"a command that succeeds has no error", nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := withExitCode(func(context.Context, string, string, string, []string, api.AttachIO) error { return tc.err })
			if got := run(t.Context(), "ns", "pod", "container", nil, nil); got != tc.want { //nolint:errorlint // The outermost error matters.
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
