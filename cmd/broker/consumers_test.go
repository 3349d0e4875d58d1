// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
)

// notRun runs nothing.
type notRun struct{}

// Add implements callers.Runner.
func (notRun) Add(manager.Runnable) error { return nil }

// issuing is how a line of Liqo has the tenant namespace of a cluster, and tells there which certificate it has issued to the cluster.
type issuing struct {
	line      line.Line
	namespace func(name string, of cluster.ID) *corev1.Namespace
	tells     func(t *testing.T, namespace string, id cluster.ID, certificate *tls.Certificate) client.Object
}

// issuings are those of all lines.
func issuings() []issuing {
	return []issuing{
		{
			line: v09.Line{},
			namespace: func(name string, of cluster.ID) *corev1.Namespace {
				namespace := liqotest.TenantNamespace(cluster.Identity{ID: of, Name: name})
				namespace.Name = name
				return namespace
			},
			tells: func(t *testing.T, namespace string, _ cluster.ID, certificate *tls.Certificate) client.Object {
				t.Helper()
				hash := remoteipam.KeyHash(parsed(t, certificate).RawSubjectPublicKeyInfo)
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: remoteipam.AnnouncementName},
					Data:       remoteipam.Announcement{Broker: "broker", Client: hash}.Data(),
				}
			},
		},
		{
			line: v1.Line{},
			namespace: func(name string, of cluster.ID) *corev1.Namespace {
				labels := map[string]string{liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: string(of)}
				return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
			},
			tells: func(t *testing.T, namespace string, id cluster.ID, certificate *tls.Certificate) client.Object {
				t.Helper()
				text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
				return &api.Tenant{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: string(id)}, Spec: api.TenantSpec{ClusterID: string(id)},
					Status: api.TenantStatus{AuthParams: &api.IssuedParams{SignedCRT: text}},
				}
			},
		},
	}
}

// TestConsumersByCertificate shows the certificates of consumers, and others, with each line of Liqo.
func TestConsumersByCertificate(t *testing.T) {
	for _, by := range issuings() {
		t.Run(by.line.Name(), func(t *testing.T) { checkConsumers(t, by) })
	}
}

// checkConsumers checks whom one line of Liqo makes known.
func checkConsumers(t *testing.T, by issuing) {
	t.Helper()
	authority, later := servingtest.NewAuthority(t), time.Now().Add(time.Hour)
	const consumer, other, silent, provider, left, moved = cluster.ID("consumer"), cluster.ID("other"), cluster.ID("silent"),
		cluster.ID("provider"), cluster.ID("left"), cluster.ID("moved")
	at := func(id cluster.ID) string { return "liqo-tenant-" + string(id) }
	issued := map[cluster.ID]*tls.Certificate{}
	var objects []client.Object
	for _, id := range []cluster.ID{consumer, other, silent, provider, left, moved} {
		issued[id] = authority.Sign(t, later, string(id), "liqo.io")
		if id != moved { // Each case about it has its own.
			objects = append(objects, by.namespace(at(id), id))
		}
		if id != moved && id != silent {
			objects = append(objects, by.tells(t, at(id), id, issued[id]))
		}
		if id != provider {
			known := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(id)}}
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
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, lines.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	type named struct {
		reason string
		shown  *tls.Certificate
		more   []client.Object
		down   bool
		want   cluster.ID
		err    error // Any other than ErrNoConsumer if down.
	}
	cases := map[string]named{
		"Consumer": {reason: "A consumer shows what was issued to it.", shown: issued[consumer], want: consumer},
		"Other":    {reason: "Each is who it is.", shown: issued[other], want: other},
		"Named": {
			reason: "Liqo signs any name: the certificate must be the one that was written down.",
			shown:  authority.Sign(t, later, string(consumer), "liqo.io"), err: httpapi.ErrNoConsumer,
		},
		"Expired": {
			reason: "A certificate ends.", shown: authority.Sign(t, time.Now().Add(-time.Minute), string(consumer)), err: httpapi.ErrNoConsumer,
		},
		"Stranger": {
			reason: "Others sign what they like.", shown: servingtest.NewAuthority(t).Sign(t, later, string(consumer)),
			err: httpapi.ErrNoConsumer,
		},
		"Node": {
			reason: "The authority signs for nodes too.", shown: authority.Sign(t, later, "system:node:a", "system:nodes"),
			err: httpapi.ErrNoConsumer,
		},
		"Provider": {reason: "Who only provides is no consumer.", shown: issued[provider], err: httpapi.ErrNoConsumer},
		"Untold": {
			reason: "What was not told does not count.", shown: issued[silent], err: httpapi.ErrNoConsumer,
		},
		"Left":    {reason: "A certificate outlasts the peering.", shown: issued[left], err: httpapi.ErrNoConsumer},
		"Nothing": {reason: "Nothing is nobody's.", err: httpapi.ErrNoConsumer},
		"Down":    {reason: "That nobody can tell is another thing.", shown: issued[consumer], down: true},
		"Renewed": {
			reason: "It has the same key.", want: consumer,
			shown: authority.Renew(t, later.Add(time.Hour), issued[consumer], string(consumer), "liqo.io"),
		},
		"Moved": {
			reason: "It is told in its tenant namespace, whatever the name of that.", shown: issued[moved], want: moved,
			more: []client.Object{by.namespace("elsewhere", moved), by.tells(t, "elsewhere", moved, issued[moved])},
		},
		"Two": {
			reason: "Of two tenant namespaces none counts.", shown: issued[moved], err: httpapi.ErrNoConsumer,
			more: []client.Object{
				by.namespace("first", moved), by.tells(t, "first", moved, issued[moved]),
				by.namespace("second", moved), by.tells(t, "second", moved, issued[moved]),
			},
		},
		"Twin": {
			reason: "A twin namespace is no tenant namespace.", shown: issued[moved], err: httpapi.ErrNoConsumer,
			more: []client.Object{
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "twin", Labels: map[string]string{liqo.LabelRemoteClusterID: string(moved)}}},
				by.tells(t, "twin", moved, issued[moved]),
			},
		},
		"Bare": {
			reason: "Nor is one that is only called so.", shown: issued[moved], err: httpapi.ErrNoConsumer,
			more: []client.Object{
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: at(moved)}}, by.tells(t, at(moved), moved, issued[moved]),
			},
		},
		"Guest": {
			reason: "What another cluster has in its tenant namespace tells nothing of this one.", shown: issued[moved],
			err: httpapi.ErrNoConsumer, more: []client.Object{by.namespace("own", moved), by.tells(t, at(silent), moved, issued[moved])},
		},
	}
	if !by.line.HasPlugin() { // With Liqo 0.9 the namespace alone says whose it is.
		tells := []client.Object{by.namespace("own", moved), by.tells(t, "own", silent, issued[moved])}
		cases["Host"] = named{reason: "Who is about to peer names itself.", shown: issued[moved], more: tells, err: httpapi.ErrNoConsumer}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if tc.down {
					return errors.New("down")
				}
				return c.List(ctx, list, o...)
			}}
			objects := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).WithObjects(objects...).WithObjects(tc.more...).Build()
			connection := &tls.ConnectionState{}
			if tc.shown != nil {
				connection.PeerCertificates = []*x509.Certificate{parsed(t, tc.shown)}
			}
			known := callers.New(authorities, issuedBy(by.line, objects))
			got, err := (&certified{objects: objects, callers: known}).identify(t.Context(), connection)
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
