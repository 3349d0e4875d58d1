// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// reviewed returns the request for a Service of a peer, which was the same before.
func reviewed(t *testing.T, operation admissionv1.Operation, spec corev1.ServiceSpec) admission.Request {
	t.Helper()
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Object: rawOf(t, spec)}}
	if operation == admissionv1.Update {
		request.OldObject = request.Object
	}
	return request
}

// rawOf returns a Service of a peer as a request has it.
func rawOf(t *testing.T, spec corev1.ServiceSpec) runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "web-buyer", Name: "web"}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}

// confined returns what a Confinement makes of the Service in a request.
func confined(t *testing.T, types Types, request admission.Request) runtime.RawExtension {
	t.Helper()
	answer := NewConfinement(liqotest.Scheme(t), types).Handle(t.Context(), request)
	if !answer.Allowed {
		t.Fatalf("refused: %+v", answer.Result)
	}
	if len(answer.Patches) == 0 {
		return request.Object
	}
	patch, err := json.Marshal(answer.Patches)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := operations.Apply(request.Object.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}

// specIn returns that of the Service in a request.
func specIn(t *testing.T, object runtime.RawExtension) corev1.ServiceSpec {
	t.Helper()
	var service corev1.Service
	if err := json.Unmarshal(object.Raw, &service); err != nil {
		t.Fatal(err)
	}
	return service.Spec
}

func TestGuard(t *testing.T) {
	cases := map[string]struct {
		reason    string
		operation admissionv1.Operation
		types     Types
		spec      corev1.ServiceSpec
		refusal   string // Part of the answer; empty if it is admitted.
	}{
		"Pods":     {reason: "Pods find each other by Services.", spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}},
		"Headless": {reason: "Also by such.", spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		"ExternalIP": {reason: "All nodes lead there what goes to the address.", spec: corev1.ServiceSpec{ExternalIPs: []string{"198.51.100.7"}},
			refusal: "spec.externalIPs"},
		"ExternalIPLater": {reason: "It is no better later.", operation: admissionv1.Update,
			spec: corev1.ServiceSpec{ExternalIPs: []string{"198.51.100.7"}}, refusal: "spec.externalIPs"},
		"LoadBalancerIP": {
			reason: "Some clouds give it.", spec: corev1.ServiceSpec{LoadBalancerIP: "198.51.100.7"}, refusal: "spec.loadBalancerIP",
		},
		"ClusterIP":    {reason: "The cluster has given it.", spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10"}},
		"NodePort":     {reason: "There are few.", spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}, refusal: "NodePort"},
		"LoadBalancer": {reason: "Each is paid for.", spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}, refusal: "LoadBalancer"},
		"Port": {reason: "Whatever the type.", spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, NodePort: 30446}}},
			refusal: "spec.ports"},
		"Opened": {
			reason: "Somebody has opened them.", types: Types{corev1.ServiceTypeNodePort},
			spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}},
		},
		"OnlyOne": {
			reason: "And not the others.", types: Types{corev1.ServiceTypeNodePort}, spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
			refusal: "LoadBalancer",
		},
		"Together": {
			reason: "All reasons are told at once.", spec: corev1.ServiceSpec{ExternalIPs: []string{"198.51.100.7"}, LoadBalancerIP: "198.51.100.7"},
			refusal: "spec.externalIPs takes addresses that are not the peer's; spec.loadBalancerIP",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.operation == "" {
				tc.operation = admissionv1.Create
			}
			answer := NewGuard(liqotest.Scheme(t), tc.types).Handle(t.Context(), reviewed(t, tc.operation, tc.spec))
			if answer.Allowed != (tc.refusal == "") || !answer.Allowed && !strings.Contains(answer.Result.Message, tc.refusal) {
				t.Errorf("%s\nallowed %t, %+v, want %q", tc.reason, answer.Allowed, answer.Result, tc.refusal)
			}
		})
	}
}

// TestConfinement has the API server change Services, which the guard then admits.
func TestConfinement(t *testing.T) {
	ports := []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30446}}
	plain := corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}
	cases := map[string]struct {
		reason   string
		types    Types
		is, want corev1.ServiceSpec
	}{
		"NodePort": {"The Service stays, without a port of the nodes.", nil, corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: ports, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
		}, plain},
		"LoadBalancer": {"And without a load balancer.", nil, corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: ports, AllocateLoadBalancerNodePorts: new(true), LoadBalancerClass: new("cloud"),
			LoadBalancerSourceRanges: []string{"198.51.100.0/24"}, HealthCheckNodePort: 30447,
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
		}, plain},
		"Pods": {"One for pods is left alone.", nil, plain, plain},
		"ClusterIP": {"Its address may be that of a Service to come.", nil, corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Ports: plain.Ports, ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"},
		}, plain},
		"Headless": {"One may have none.", nil, corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, ClusterIPs: []string{corev1.ClusterIPNone}},
			corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, ClusterIPs: []string{corev1.ClusterIPNone}}},
		"Opened": {"So is what somebody has opened.", Types{corev1.ServiceTypeNodePort},
			corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports}, corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := reviewed(t, admissionv1.Create, tc.is)
			request.Object = confined(t, tc.types, request)
			if diff := cmp.Diff(tc.want, specIn(t, request.Object)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			if answer := NewGuard(liqotest.Scheme(t), tc.types).Handle(t.Context(), request); !answer.Allowed {
				t.Errorf("the guard refuses it: %+v", answer.Result)
			}
		})
	}
}

func TestParseTypes(t *testing.T) {
	if types, err := ParseTypes([]string{"NodePort", "LoadBalancer"}); err != nil || len(types) != 2 {
		t.Errorf("ParseTypes() = %v, %v", types, err)
	}
	for _, name := range []string{"ExternalName", "nodeport", ""} {
		if _, err := ParseTypes([]string{name}); err == nil {
			t.Errorf("ParseTypes(%q) takes it", name)
		}
	}
}

// TestClusterIPs changes Services, and has the API server give them the addresses that they do not have then.
func TestClusterIPs(t *testing.T) {
	of := func(ips ...string) corev1.ServiceSpec {
		spec := corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIPs: ips}
		if len(ips) > 0 {
			spec.ClusterIP = ips[0]
		}
		return spec
	}
	const given, chosen, given6, chosen6 = "10.96.0.7", "10.96.0.10", "fd00::7", "fd00::10"
	elsewhere := corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"}
	left, alone, listed, twofold := elsewhere, of(), of(), of(given)
	twofold.ClusterIP = chosen
	left.ClusterIP, left.ClusterIPs = given, []string{given}
	alone.ClusterIP, listed.ClusterIPs = chosen, []string{chosen}
	opened := of(chosen)
	opened.Type = corev1.ServiceTypeNodePort
	for name, tc := range map[string]struct {
		reason           string
		before, is, want corev1.ServiceSpec
	}{
		"Kept":        {"Liqo applies the rest of a Service, which keeps its address.", of(given), of(given), of(given)},
		"KeptBoth":    {"Or both.", of(given, given6), of(given, given6), of(given, given6)},
		"Unsaid":      {"Who does not know it does not say it.", of(given), of(), of()},
		"Becomes":     {"An ExternalName gets one when it is none any more.", elsewhere, of(), of()},
		"BecomesNone": {"Or has none.", elsewhere, of(corev1.ClusterIPNone), of(corev1.ClusterIPNone)},
		"Leaves":      {"It gives back the one that it has.", of(given), left, left},
		"Stays":       {"It has none.", elsewhere, elsewhere, elsewhere},
		"Chosen":      {"The peer does not choose it then either.", elsewhere, of(chosen), of()},
		"ChosenPort":  {"Whatever it is then.", elsewhere, opened, of()},
		"ChosenBoth":  {"Not one of both.", elsewhere, of(chosen, chosen6), of()},
		"ChosenAlone": {"However it is written.", elsewhere, alone, of()},
		"ChosenList":  {"However it is written.", elsewhere, listed, of()},
		"Second":      {"Nor the one of the other family.", of(given), of(given, chosen6), of(given)},
		"SecondNext":  {"Nor another one.", of(given, given6), of(given, chosen6), of(given)},
		"Released":    {"It may do without.", of(given, given6), of(given), of(given)},
		"Another":     {"It keeps the one that it has.", of(given), of(chosen), of()},
		"AnotherSaid": {"Also if it says two.", of(given), twofold, of(given)},
	} {
		t.Run(name, func(t *testing.T) {
			request := reviewed(t, admissionv1.Update, tc.is)
			request.OldObject = rawOf(t, tc.before)
			if diff := cmp.Diff(tc.want, specIn(t, confined(t, nil, request)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeleted changes Services that finalizers keep.
func TestDeleted(t *testing.T) {
	deleted := func(spec corev1.ServiceSpec, finalizers ...string) runtime.RawExtension {
		raw, err := json.Marshal(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", DeletionTimestamp: new(metav1.Now()), Finalizers: finalizers}, Spec: spec,
		})
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	plain := corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}, ClusterIP: "10.96.0.7"}
	opened, chosen, taken := plain, plain, plain
	opened.Type, opened.Ports = corev1.ServiceTypeNodePort, []corev1.ServicePort{{Port: 80, NodePort: 30080}}
	chosen.ClusterIP = "10.96.0.10"
	taken.ExternalIPs = []string{"198.51.100.7"}
	unchosen := plain
	unchosen.ClusterIP = ""
	for name, tc := range map[string]struct {
		reason           string
		before, is, want corev1.ServiceSpec
		refusal          string // Of the guard, asked about what the peer wrote; empty if it is admitted.
	}{
		"Goes":      {"Nobody keeps it from going.", plain, plain, plain, ""},
		"Opened":    {"Whatever it has.", opened, opened, opened, ""},
		"Taken":     {"Whatever it has.", taken, taken, taken, ""},
		"Opens":     {"A peer that keeps it takes no ports of the nodes.", plain, opened, plain, "NodePort"},
		"Takes":     {"Nor other addresses.", plain, taken, taken, "spec.externalIPs"},
		"Chooses":   {"Nor the one that another Service has next.", plain, chosen, unchosen, ""},
		"OpensMore": {"Nor more than it had.", taken, opened, plain, "NodePort"},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Object: deleted(tc.is), OldObject: deleted(tc.before, "example.com/hostile"),
			}}
			if diff := cmp.Diff(tc.want, specIn(t, confined(t, nil, request))); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			answer := NewGuard(liqotest.Scheme(t), nil).Handle(t.Context(), request)
			if answer.Allowed != (tc.refusal == "") || !answer.Allowed && !strings.Contains(answer.Result.Message, tc.refusal) {
				t.Errorf("%s\nallowed %t, %+v, want %q", tc.reason, answer.Allowed, answer.Result, tc.refusal)
			}
		})
	}
}

// TestJunk sends what is no Service.
func TestJunk(t *testing.T) {
	request := admission.Request{
		AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(`[1]`)}},
	}
	for _, handler := range []admission.Handler{NewGuard(liqotest.Scheme(t), nil), NewConfinement(liqotest.Scheme(t), nil)} {
		if answer := handler.Handle(t.Context(), request); answer.Allowed || answer.Result.Code != 400 {
			t.Errorf("%T: %+v, want a refusal with code 400", handler, answer.Result)
		}
	}
	request = reviewed(t, admissionv1.Update, corev1.ServiceSpec{})
	request.OldObject.Raw = []byte(`[1]`)
	for _, handler := range []admission.Handler{NewGuard(liqotest.Scheme(t), nil), NewConfinement(liqotest.Scheme(t), nil)} {
		if answer := handler.Handle(t.Context(), request); answer.Allowed || answer.Result.Code != 400 {
			t.Errorf("%T, what was no Service: %+v, want a refusal with code 400", handler, answer.Result)
		}
	}
}
