// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/httpstream"
)

func TestDropUnservedProtocols(t *testing.T) {
	cases := map[string]struct {
		reason  string
		offered []string
		want    []string
	}{
		"Kubernetes134": {"kube-apiserver 1.34 offers each version in a line of its own",
			[]string{"v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io"}, []string{"v4.channel.k8s.io,v3.channel.k8s.io"}},
		"Kubernetes128": {"an older one offers no v5", []string{"v4.channel.k8s.io", "v3.channel.k8s.io"}, []string{"v4.channel.k8s.io,v3.channel.k8s.io"}},
		"OneLine":       {"a proxy may have joined the lines", []string{"v5.channel.k8s.io, v4.channel.k8s.io"}, []string{"v4.channel.k8s.io"}},
		"PortForward":   {"other protocols pass", []string{"portforward.k8s.io"}, []string{"portforward.k8s.io"}},
		"None":          {"logs negotiate nothing", nil, nil},
		"OnlyV5":        {"the handler below would agree on what it cannot speak", []string{"v5.channel.k8s.io"}, nil},
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
