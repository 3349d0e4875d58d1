// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addresses_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/webhook/addresses"
	admissiontest "github.com/capacitorset/liqo-broker/test/admission"
)

// pod returns one of a ShadowPod on a node, with addresses.
func pod(node string, ips ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "web-0", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "offloading.liqo.io/v1beta1", Kind: "ShadowPod", Name: "web-0"},
		}},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for i, ip := range ips {
		if i == 0 {
			p.Status.PodIP = ip
		}
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	return p
}

func TestHandle(t *testing.T) {
	host := pod("p")
	host.Spec.HostNetwork = true
	odd := pod("p", "10.69.0.7")
	odd.Status.PodIP = "172.30.0.2"
	cases := map[string]struct {
		reason        string
		before, after *corev1.Pod
		refused       string
		want          string // The address with which the pod is shown.
	}{
		"Own":    {reason: "It is one of the provider.", before: pod("p"), after: pod("p", "10.69.0.7"), want: "10.69.0.7"},
		"Second": {reason: "The provider has two networks.", before: pod("p"), after: pod("p", "10.71.0.7"), want: "10.71.0.7"},
		"Node": {
			reason: "Liqo would open a node.",
			before: pod("p"), after: pod("p", "172.30.0.2"), refused: `"172.30.0.2" is no address`,
		},
		"Other": {
			reason: "It is of another provider.",
			before: pod("p"), after: pod("p", "10.65.0.7"), refused: "is no address of a pod on node p",
		},
		"Moved":  {reason: "It was true before.", before: pod("p", "10.69.0.7"), after: pod("p", "10.96.0.1"), refused: "is no address"},
		"Behind": {reason: "All of them count.", before: pod("p"), after: pod("p", "10.69.0.7", "10.96.0.1"), refused: "is no address"},
		"First":  {reason: "So does the one that Liqo opens.", before: pod("p"), after: odd, refused: "is no address"},
		"Kept": {
			reason: "The network had another prefix.",
			before: pod("p", "10.60.0.7"), after: pod("p", "10.60.0.7"), want: "10.60.0.7",
		},
		"Unknown": {reason: "There is no network to its provider.", before: pod("x"), after: pod("x", "10.69.0.7")},
		"Failed": {
			reason: "Without an answer nothing is opened.",
			before: pod("f"), after: pod("f", "10.69.0.7"), refused: "cannot determine",
		},
		"Host": {reason: "It has the address of its node.", before: host, after: pod("p", "172.30.0.2")},
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handler := addresses.New(scheme, func(_ context.Context, node string) ([]netip.Prefix, error) {
		switch node {
		case "p":
			return []netip.Prefix{netip.MustParsePrefix("10.69.0.0/16"), netip.MustParsePrefix("10.71.0.0/16")}, nil
		case "f":
			return nil, errors.New("nobody answers")
		default:
			return nil, nil
		}
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, err := json.Marshal(tc.before)
			if err != nil {
				t.Fatal(err)
			}
			after, err := json.Marshal(tc.after)
			if err != nil {
				t.Fatal(err)
			}
			answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, SubResource: "status",
				OldObject: runtime.RawExtension{Raw: before}, Object: runtime.RawExtension{Raw: after},
			}})
			if answer.Allowed != (tc.refused == "") || tc.refused != "" && !strings.Contains(answer.Result.Message, tc.refused) {
				t.Fatalf("%s\nallowed: %t, %v", tc.reason, answer.Allowed, answer.Result)
			}
			if !answer.Allowed {
				return
			}
			if got := shown(t, after, answer); got.Status.PodIP != tc.want || tc.want == "" && len(got.Status.PodIPs) > 0 ||
				got.Status.Phase != corev1.PodRunning {
				t.Errorf("%s\nit is shown as %+v", tc.reason, got.Status)
			}
		})
	}
}

// shown returns the pod as an answer leaves it.
func shown(t *testing.T, object []byte, answer admission.Response) *corev1.Pod {
	t.Helper()
	if len(answer.Patches) > 0 {
		text, err := json.Marshal(answer.Patches)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if object, err = patch.Apply(object); err != nil {
			t.Fatal(err)
		}
	}
	var p corev1.Pod
	if err := json.Unmarshal(object, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestAsked checks about which statuses the API server asks: with Liqo 1.x, and when an address comes. What a consumer writes on a pod does
// not keep it from asking.
func TestAsked(t *testing.T) {
	webhooks := admissiontest.Webhooks(t, "../../../deploy/broker/webhook.yaml")
	at := slices.IndexFunc(webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return *w.ClientConfig.Service.Path == addresses.Path
	})
	if at < 0 {
		t.Fatalf("the API server does not ask %s", addresses.Path)
	}
	asked := func(before, after *corev1.Pod) bool {
		objects := map[string]any{}
		for name, pod := range map[string]*corev1.Pod{"oldObject": before, "object": after} {
			text, err := json.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			var fields map[string]any
			if err := json.Unmarshal(text, &fields); err != nil {
				t.Fatal(err)
			}
			objects[name] = fields
		}
		return !slices.ContainsFunc(webhooks[at].MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
			return !admissiontest.Holds(t, c.Expression, objects)
		})
	}
	other, none := pod("p", "10.69.0.7"), pod("p", "10.69.0.7")
	other.OwnerReferences[0].APIVersion, none.OwnerReferences = "virtualkubelet.liqo.io/v1alpha1", nil
	odd := pod("p", "10.69.0.7")
	odd.Status.PodIP = "172.30.0.2"
	for name, tc := range map[string]struct {
		reason        string
		before, after *corev1.Pod
		asked         bool
	}{
		"New":     {"It comes.", pod("p"), pod("p", "10.69.0.7"), true},
		"Other":   {"It is another one.", pod("p", "10.69.0.7"), pod("p", "10.69.0.8"), true},
		"More":    {"There is one more.", pod("p", "10.69.0.7"), pod("p", "10.69.0.7", "10.69.0.8"), true},
		"First":   {"The first one is another.", pod("p", "10.69.0.7"), odd, true},
		"Same":    {"It is known.", pod("p", "10.69.0.7"), pod("p", "10.69.0.7"), false},
		"Gone":    {"There is none any more.", pod("p", "10.69.0.7"), pod("p"), false},
		"None":    {"There is none.", pod("p"), pod("p"), false},
		"OfLiqo0": {"With Liqo 0.9 virtual kubelets look at addresses.", other, pod("p", "10.69.0.8"), false},
		"OfHere":  {"It is no pod of a peer.", none, pod("p", "10.69.0.8"), false},
	} {
		if got := asked(tc.before, tc.after); got != tc.asked {
			t.Errorf("%s: %s\nthe API server asks: %t", name, tc.reason, got)
		}
	}
}
