// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// notRun runs nothing.
type notRun struct{}

// Add implements callers.Runner.
func (notRun) Add(manager.Runnable) error { return nil }

// TestConsumersByCertificate shows the certificates of consumers, and others.
func TestConsumersByCertificate(t *testing.T) {
	authority, later := servingtest.NewAuthority(t), time.Now().Add(time.Hour)
	consumer, other := cluster.Identity{ID: "consumer", Name: "c"}, cluster.Identity{ID: "other", Name: "o"}
	silent, provider := cluster.Identity{ID: "silent", Name: "s"}, cluster.Identity{ID: "provider", Name: "p"}
	left := cluster.Identity{ID: "left", Name: "l"}
	issued := map[cluster.ID]*tls.Certificate{}
	objects := []client.Object{liqotest.TenantNamespace(silent), &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(silent.ID)}}}
	for _, id := range []cluster.Identity{consumer, other, provider, left} {
		issued[id.ID] = authority.Sign(t, later, string(id.ID), "liqo.io")
		leaf := parsed(t, issued[id.ID])
		announcement := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: liqotest.Tenant(id), Name: remoteipam.AnnouncementName}}
		announcement.Data = remoteipam.Announcement{Broker: "broker", Client: remoteipam.KeyHash(leaf.RawSubjectPublicKeyInfo)}.Data()
		objects = append(objects, liqotest.TenantNamespace(id), announcement)
		if id != provider {
			known := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID)}}
			reason := v1alpha1.ReasonOffering
			if id == left {
				reason = v1alpha1.ReasonNotPeered
			}
			meta.SetStatusCondition(&known.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Reason: reason})
			objects = append(objects, known)
		}
	}
	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: callers.AuthoritiesNamespace, Name: callers.AuthoritiesName},
		Data:       map[string]string{"client-ca-file": authority.PEM()},
	}
	authorities, err := callers.NewAuthorities(t.Context(), kubefake.NewSimpleClientset(published), notRun{}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		shown  *tls.Certificate
		down   bool
		want   cluster.ID
		err    error // Any other than ErrNoConsumer if down.
	}{
		"Consumer": {reason: "A consumer shows what was issued to it.", shown: issued[consumer.ID], want: consumer.ID},
		"Other":    {reason: "Each is who it is.", shown: issued[other.ID], want: other.ID},
		"Named": {
			reason: "Liqo signs any name: the certificate must be the one that was written down.",
			shown:  authority.Sign(t, later, string(consumer.ID), "liqo.io"), err: httpapi.ErrNoConsumer,
		},
		"Expired": {
			reason: "A certificate ends.", shown: authority.Sign(t, time.Now().Add(-time.Minute), string(consumer.ID)), err: httpapi.ErrNoConsumer,
		},
		"Stranger": {
			reason: "Others sign what they like.", shown: servingtest.NewAuthority(t).Sign(t, later, string(consumer.ID)),
			err: httpapi.ErrNoConsumer,
		},
		"Node": {
			reason: "The authority signs for nodes too.", shown: authority.Sign(t, later, "system:node:a", "system:nodes"),
			err: httpapi.ErrNoConsumer,
		},
		"Provider": {reason: "Who only provides is no consumer.", shown: issued[provider.ID], err: httpapi.ErrNoConsumer},
		"Untold": {
			reason: "What was not announced does not count.", shown: authority.Sign(t, later, string(silent.ID)), err: httpapi.ErrNoConsumer,
		},
		"Left":    {reason: "A certificate outlasts the peering.", shown: issued[left.ID], err: httpapi.ErrNoConsumer},
		"Nothing": {reason: "Nothing is nobody's.", err: httpapi.ErrNoConsumer},
		"Down":    {reason: "That nobody can tell is another thing.", shown: issued[consumer.ID], down: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := snapshottest.NewClient(t,
				interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
					if tc.down {
						return errors.New("down")
					}
					return c.List(ctx, list, o...)
				}}, objects...)
			connection := &tls.ConnectionState{}
			if tc.shown != nil {
				connection.PeerCertificates = []*x509.Certificate{parsed(t, tc.shown)}
			}
			got, err := (&certified{objects: objects, callers: callers.New(authorities, announced(objects))}).identify(t.Context(), connection)
			if tc.down {
				if got != "" || err == nil || errors.Is(err, httpapi.ErrNoConsumer) {
					t.Errorf("%s\n%q, %v", tc.reason, got, err)
				}
				return
			}
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s\n%q, %v; want %q, %v", tc.reason, got, err, tc.want, tc.err)
			}
		})
	}
}

func parsed(t *testing.T, certificate *tls.Certificate) *x509.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}
