// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package linetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
)

// namespaceMaps is the resource whose objects have the same fields in all lines.
const namespaceMaps = "namespacemaps"

// altering changes an object in JSON.
type altering func(metadata, spec, status map[string]any)

// altered returns an object in JSON, changed.
func (c *Copy) altered(t *testing.T, by altering) []byte {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(asJSON(t, c.Object)), &o); err != nil {
		t.Fatal(err)
	}
	parts := map[string]map[string]any{}
	for _, name := range []string{"metadata", "spec", "status"} {
		parts[name], _ = o[name].(map[string]any)
		if parts[name] == nil {
			parts[name] = map[string]any{}
		}
		o[name] = parts[name]
	}
	if labels, _ := parts["metadata"]["labels"].(map[string]any); labels == nil {
		parts["metadata"]["labels"] = map[string]any{}
	}
	by(parts["metadata"], parts["spec"], parts["status"])
	return []byte(asJSON(t, o))
}

// write returns that of the consumer, of an object as it was and as it is to be.
func (w *World) write(c *Copy, before, after []byte) *peerwrite.Write {
	return &peerwrite.Write{User: string(w.Consumer.ID), Group: c.Group, Resource: c.Resource, Old: before, New: after}
}

// label sets one in the metadata of an object in JSON; an empty one it removes.
func label(key, value string) altering {
	return func(metadata, _, _ map[string]any) {
		labels := metadata["labels"].(map[string]any) //nolint:revive // Who calls it has made sure.
		if labels[key] = value; value == "" {
			delete(labels, key)
		}
	}
}

// checkPeersWrite checks what is the same of what an honest peer writes with each line.
func (w *World) checkPeersWrite(t *testing.T) {
	t.Helper()
	rules := w.Line.PeerRules()
	as := func(map[string]any, map[string]any, map[string]any) {}
	for i := range w.Copies {
		c := &w.Copies[i]
		honest := c.altered(t, as)
		cases := map[string]struct {
			reason string
			write  *peerwrite.Write
			want   string
		}{
			"Create": {"An honest peer makes it.", w.write(c, nil, honest), ""},
			"Update": {"And changes it.", w.write(c, honest, honest), ""},
			"Delete": {"And removes it.", w.write(c, honest, nil), ""},
			"NoCopy": {"It is not one of ours.", w.write(c, nil, c.altered(t, label(liqo.LabelReplicated, ""))), liqo.LabelReplicated},
			"Origin": {
				"It is of another one.", w.write(c, nil, c.altered(t, label(liqo.LabelOrigin, string(w.Liar.ID)))), liqo.LabelOrigin,
			},
			"Destination": {
				"It is for another one.", w.write(c, nil, c.altered(t, label(liqo.LabelDestination, string(w.Liar.ID)))), liqo.LabelDestination,
			},
			"Onwards": {
				"It does not go on from here.", w.write(c, nil, c.altered(t, label(liqo.LabelReplication, liqo.ReplicationValue))),
				liqo.LabelReplication,
			},
			"Ours":   {"It removes none of ours.", w.write(c, c.altered(t, label(liqo.LabelReplicated, "")), nil), liqo.LabelReplicated},
			"Remote": {"Liqo finds it by this label.", w.write(c, honest, c.altered(t, label(liqo.LabelRemoteClusterID, "x"))), c.Remote},
			"Large": {"It is kept in memory.", w.write(c, nil, c.altered(t, func(metadata, _, _ map[string]any) {
				metadata["annotations"] = map[string]any{"a": strings.Repeat("x", peerwrite.MaxObject)}
			})), fmt.Sprintf("a peer may write up to %d", peerwrite.MaxObject)},
			"Broken":     {"Nobody can read it.", w.write(c, nil, []byte(`{"metadata":`)), "read the object"},
			"Unreadable": {"Nor this.", w.write(c, nil, []byte(`{"metadata": {"labels": 7}}`)), "metadata.labels has the wrong type"},
		}
		for name, tc := range cases {
			checkRefusal(t, c.Resource+" "+name+": "+tc.reason, rules.Check(tc.write, w.Consumer.ID, w.Own.ID), tc.want)
		}
		status := w.write(c, honest, honest)
		status.Subresource = "status"
		checkRefusal(t, "It is this cluster that answers.", rules.Check(status, w.Consumer.ID, w.Own.ID), "status of "+c.Resource)
		elsewhere := rules.Check(w.write(c, nil, honest), w.Liar.ID, w.Own.ID)
		checkRefusal(t, "It is another's namespace.", elsewhere, "writes in the tenant namespace of")
		other := w.write(c, nil, honest)
		other.Group = "example.com"
		checkRefusal(t, "That is something else.", rules.Check(other, w.Consumer.ID, w.Own.ID), "")
	}
}

// checkRefusal compares a refusal with a part of what it is to say; empty for none.
func checkRefusal(t *testing.T, reason string, got error, want string) {
	t.Helper()
	if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
		t.Errorf("%s\nrefused: %v, want %q", reason, got, want)
	}
}

// checkMaps checks which namespaces a peer may offload here, and which ones it may say that it has made.
func (w *World) checkMaps(t *testing.T) {
	t.Helper()
	rules, found := w.Line.PeerRules(), false
	for i := range w.Copies {
		c := &w.Copies[i]
		if c.Resource != namespaceMaps {
			continue
		}
		found = true
		mapped := func(to map[string]any) []byte {
			return c.altered(t, func(_, spec, _ map[string]any) { spec["desiredMapping"] = to })
		}
		many := map[string]any{}
		for n := range peerwrite.MaxMappings + 1 {
			many[fmt.Sprintf("n%d", n)] = fmt.Sprintf("n%d-x", n)
		}
		checkRefusal(t, "Each becomes several objects.", rules.Check(w.write(c, nil, mapped(many)), w.Consumer.ID, w.Own.ID), "namespaces")
		tenant := w.write(c, nil, mapped(map[string]any{"x": "liqo-tenant-new"}))
		checkRefusal(t, "It is that of a cluster to come.", rules.Check(tenant, w.Consumer.ID, w.Own.ID), "spec.desiredMapping[x]")

		// What this cluster asked for, in a map of its own.
		copied := func(replication string, made map[string]any) *peerwrite.Write {
			w := w.write(c, nil, c.altered(t, func(metadata, spec, status map[string]any) {
				label(liqo.LabelReplication, replication)(metadata, spec, status)
				spec["desiredMapping"] = map[string]any{"web": "web-x"}
				status["currentMapping"] = made
			}))
			w.Subresource = "status"
			return w
		}
		made := func(name, to, phase string) map[string]any {
			return map[string]any{name: map[string]any{"remoteNamespace": to, "phase": phase}}
		}
		const own = liqo.ReplicationValue
		checkRefusal(t, "It was asked for.", rules.CheckCopied(copied(own, made("web", "web-x", "Accepted"))), "")
		checkRefusal(t, "It was not.", rules.CheckCopied(copied(own, made("loot", "web-x", "Accepted"))), "status.currentMapping[loot]")
		checkRefusal(t, "It leads elsewhere.", rules.CheckCopied(copied(own, made("web", "loot", "Accepted"))), "status.currentMapping[web]")
		checkRefusal(t, "It ends.", rules.CheckCopied(copied(own, made("loot", "loot", "Terminating"))), "")
		checkRefusal(t, "It is what a consumer asked for.", rules.CheckCopied(copied("false", made("loot", "loot", "Accepted"))), "")
	}
	if !found {
		t.Errorf("the world has no copies of %s", namespaceMaps)
	}
}

// checkWriters checks who counts as a peer, and in whose namespace.
func (w *World) checkWriters(t *testing.T) {
	t.Helper()
	rules := w.Line.PeerRules()
	for _, tc := range []struct {
		reason string
		write  peerwrite.Write
		want   bool
	}{
		{"It is called as the peer.", peerwrite.Write{User: string(w.Consumer.ID)}, true},
		{"It has a certificate by Liqo.", peerwrite.Write{User: string(w.Liar.ID), Groups: []string{"liqo.io"}}, true},
		{"It is a person.", peerwrite.Write{User: "alice", Groups: []string{"staff"}}, false},
	} {
		if got := rules.IsPeer(&tc.write, w.Consumer.ID); got != tc.want {
			t.Errorf("%s\nIsPeer(%q) = %t", tc.reason, tc.write.User, got)
		}
	}
	for _, o := range w.ofKind(&corev1.Namespace{}) {
		want := map[string]Peer{w.Consumer.Tenant: w.Consumer, w.Provider.Tenant: w.Provider, w.Liar.Tenant: w.Liar}[o.GetName()]
		if got, is := rules.TenantOf(o.(*corev1.Namespace)); got != want.ID || is != (want.ID != "") {
			t.Errorf("TenantOf(%s) = %q, %t, want %q", o.GetName(), got, is, want.ID)
		}
	}
}

// checkIdentityRules checks that nobody is given a certificate who would be more than a peer.
func (w *World) checkIdentityRules(t *testing.T) {
	t.Helper()
	rules := w.Line.IdentityRules()
	for _, user := range []string{"alice", "system:serviceaccount:liqo:liqo-crd-replicator", string(w.Consumer.ID)} {
		if rules.Requests(user) {
			t.Errorf("%s is taken for Liqo", user)
		}
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	consumer := string(w.Consumer.ID)
	for reason, subject := range map[string]pkix.Name{
		"All groups count.":        {CommonName: consumer, Organization: []string{"liqo.io", "kubeadm:cluster-admins"}},
		"It may do everything.":    {CommonName: consumer, Organization: []string{"system:masters"}},
		"It has no group.":         {CommonName: consumer},
		"It is a component.":       {CommonName: "system:kube-controller-manager", Organization: []string{"liqo.io"}},
		"It has no name.":          {Organization: []string{"liqo.io"}},
		"Nobody knows it.":         {CommonName: "0a1b2c3d-0000-4000-8000-000000000009", Organization: []string{"liqo.io"}},
		"It is more than a group.": {CommonName: consumer, Organization: []string{"liqo.io"}, OrganizationalUnit: []string{"x"}},
	} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
		if err != nil {
			t.Fatal(err)
		}
		request := must[*x509.CertificateRequest](t)(x509.ParseCertificateRequest(der))
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		refusal, err := rules.Check(t.Context(), w.newClient(t, w.Objects, interceptor.Funcs{}), liqo.DefaultNamespace, request, text)
		if refusal == nil || err != nil {
			t.Errorf("%s\nCheck(%s) = %v, %v", reason, subject, refusal, err)
		}
	}
}

// checkNetworkRules compares what is routed to the Provider with how it is seen.
func (w *World) checkNetworkRules(t *testing.T) {
	t.Helper()
	rules, found := w.Line.NetworkRules(), false
	for _, o := range w.ofKind(w.Line.Kinds().Network) {
		text := []byte(asJSON(t, o))
		routed, err := rules.Routed(text)
		if err != nil {
			t.Errorf("Routed(%s) = %v", text, err)
		}
		if o.GetNamespace() == w.Provider.Tenant {
			if found = true; fmt.Sprint(routed) != "["+Seen+"]" {
				t.Errorf("Routed() = %v, want %s", routed, Seen)
			}
		}
		if err := rules.CheckNetwork(nil, text, routed, nil); err != nil {
			t.Errorf("CheckNetwork(%s) = %v", text, err)
		}
	}
	if !found {
		t.Error("the world has no network towards the provider")
	}
	if routed, err := rules.Routed(nil); err != nil || len(routed) > 0 {
		t.Errorf("without a network Routed() = %v, %v", routed, err)
	}
	if _, err := rules.Routed([]byte(`{"spec": 1}`)); err == nil {
		t.Error("Routed() reads what is no network")
	}
	if advice := rules.NetworkAdvice(); !strings.Contains(advice, "reservedSubnets") {
		t.Errorf("NetworkAdvice() = %q", advice)
	}
}
