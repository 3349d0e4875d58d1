// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
)

// raw returns an object of trade as the API server sends it.
func raw(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

// purchase and sale return a contract that runs, with some changes.
func purchase(changes ...func(*connectorv1alpha1.Purchase)) *connectorv1alpha1.Purchase {
	p := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
	p.Status.State, p.Status.Nodes = "Active", []string{"liqo-milan"}
	for _, change := range changes {
		change(p)
	}
	return p
}

func sale(changes ...func(*connectorv1alpha1.Sale)) *connectorv1alpha1.Sale {
	s := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u"}}
	s.Status.State = "Active"
	for _, change := range changes {
		change(s)
	}
	return s
}

// TestContracts has people end and suspend contracts: who does is told what the object says of it, and no more.
func TestContracts(t *testing.T) {
	type (
		bought = connectorv1alpha1.Purchase
		sold   = connectorv1alpha1.Sale
	)
	endPurchase := func(p *bought) { p.Spec.End = &connectorv1alpha1.ContractEnd{Reason: "no longer"} }
	endSale := func(s *sold) { s.Spec.End = &connectorv1alpha1.ContractEnd{} }
	suspend := func(s *sold) { s.Spec.Suspended = true }
	inState := func(state string) func(*sold) { return func(s *sold) { s.Status.State = state } }
	request := &connectorv1alpha1.CapacityRequest{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	request.Status.Purchase = "r-1"
	orphan := metav1.DeletePropagationOrphan
	const (
		endsWith = "Purchase p ends, which cannot be taken back"
		pays     = ". It is paid for the time of notice, at most until its end."
		notice   = "Sale s ends after the agreed notice, which cannot be taken back. The pods of its buyer have to leave this cluster then, " +
			"unless other contracts have room for them."
		suspends = "Sale s gives its buyer nothing while it is suspended, and costs nothing: the pods of its buyer have to leave this " +
			"cluster, unless other contracts have room for them."
	)
	cases := map[string]struct {
		reason        string
		kind          string
		group         string // That of the objects, if empty.
		before, after any    // Deleted, if there is no after.
		options       any
		want          string
	}{
		"PurchaseEnds": {
			reason: "Its pods leave, and it is paid for.", kind: "Purchase", before: purchase(), after: purchase(endPurchase),
			want: endsWith + ": the pods on node liqo-milan have to leave, unless other contracts have room for them" + pays,
		},
		"PurchaseDeleted": {
			reason: "Who deletes it ends it.", kind: "Purchase", before: purchase(func(p *bought) { p.Status.Nodes = []string{"a", "b"} }),
			want: endsWith + ": the pods on 2 virtual nodes have to leave, unless other contracts have room for them" + pays,
		},
		"PurchaseLeaves": {
			reason: "How many have not left is known while they leave.", kind: "Purchase", after: purchase(endPurchase),
			before: purchase(func(p *bought) { p.Status.State, p.Status.PodsLeft = "Terminating", 3 }),
			want:   endsWith + ": 3 pods have not left yet.",
		},
		"PurchaseReserved": {
			reason: "Of one that has no nodes nothing leaves.", kind: "Purchase", after: purchase(endPurchase),
			before: purchase(func(p *bought) { p.Status.State, p.Status.Nodes = "Reserved", nil }), want: endsWith + ".",
		},
		"PurchaseEndsAgain": {reason: "It was said once.", kind: "Purchase", before: purchase(endPurchase)},
		"PurchaseOver": {
			reason: "Of one that is over nothing is lost.", kind: "Purchase", before: purchase(func(p *bought) { p.Status.State = "Ended" }),
		},
		"PurchaseRenews": {
			reason: "Another change ends nothing.", kind: "Purchase", before: purchase(), after: purchase(func(p *bought) { p.Spec.Renew = true }),
		},
		"SaleEnds":      {reason: "There is notice.", kind: "Sale", before: sale(), after: sale(endSale), want: notice},
		"SaleDeleted":   {reason: "Who deletes it ends it.", kind: "Sale", before: sale(), want: notice},
		"SaleSuspended": {reason: "Its pods leave now.", kind: "Sale", before: sale(), after: sale(suspend), want: suspends},
		"SaleResumed":   {reason: "That takes nothing.", kind: "Sale", before: sale(suspend), after: sale()},
		"SaleStaysSuspended": {
			reason: "It was said once.", kind: "Sale", before: sale(suspend), after: sale(suspend, func(s *sold) { s.Spec.Reason = "x" }),
		},
		"SuspendedEnds": {
			reason: "One that is suspended ends as others do.", kind: "Sale", before: sale(suspend, inState("Suspended")),
			after: sale(suspend, endSale), want: notice,
		},
		"SaleProposed": {
			reason: "Before anything is given, nothing leaves.", kind: "Sale", before: sale(inState("Proposed")), after: sale(endSale),
			want: "Sale s ends, which cannot be taken back.",
		},
		"SaleTerminates": {reason: "It ends already.", kind: "Sale", before: sale(inState("Terminating")), after: sale(endSale)},
		"SaleFailed":     {reason: "It is over.", kind: "Sale", before: sale(inState("Failed")), after: sale(suspend)},
		"Approved": {
			reason: "Who approves takes nothing.", kind: "Sale", before: sale(), after: sale(func(s *sold) { s.Spec.Decision = "Approve" }),
		},
		"RequestDeleted": {
			reason: "Its Purchase goes with it.", kind: "CapacityRequest", before: request,
			want: "The contract of CapacityRequest r ends with it: Purchase r-1 is deleted, and the pods on its nodes leave.",
		},
		"RequestOrphans": {
			reason: "Unless that is to stay.", kind: "CapacityRequest", before: request,
			options: metav1.DeleteOptions{PropagationPolicy: &orphan},
		},
		"RequestWithoutPurchase": {reason: "There is none.", kind: "CapacityRequest", before: &connectorv1alpha1.CapacityRequest{}},
		"Request":                {reason: "A change of one ends nothing.", kind: "CapacityRequest", before: request, after: request},
		"Offer":                  {reason: "Offers are no contracts.", kind: "Offer", before: &connectorv1alpha1.Offer{}},
		"OtherGroup":             {reason: "Nor is what has the same name elsewhere.", kind: "Sale", group: "example.com", before: sale()},
		"Unreadable":             {reason: "Others say what cannot be read.", kind: "Sale", before: map[string]any{"spec": 1}},
		"Hostile": {
			reason: "Names are short and plain.", kind: "Purchase", after: purchase(endPurchase),
			before: purchase(func(p *bought) {
				p.Name, p.Status.Nodes = strings.Repeat("n", 250), []string{"a\u202e\n" + strings.Repeat("x", 250)}
			}),
			want: "Purchase " + strings.Repeat("n", maxName-3) + "... ends, which cannot be taken back: the pods on node a? " +
				strings.Repeat("x", 32) + "... have to leave, unless other contracts have room for them" + pays,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			operation := admissionv1.Update
			asked := &admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind{Group: "brokering.liqo.io", Version: "v1alpha1", Kind: tc.kind},
				Name: "x", UserInfo: authenticationv1.UserInfo{Username: "alice"}, OldObject: raw(t, tc.before),
			}
			if tc.group != "" {
				asked.Kind.Group = tc.group
			}
			if tc.after == nil {
				operation = admissionv1.Delete
			} else {
				asked.Object = raw(t, tc.after)
			}
			if tc.options != nil {
				asked.Options = raw(t, tc.options)
			}
			asked.Operation = operation
			var got []string
			running(t, &sink{}, func(t *testing.T, l *Log) {
				t.Helper()
				got = asks(t, New(l, "nobody", Contracts), asked).Warnings
			})
			if said := strings.Join(got, "|"); said != tc.want {
				t.Errorf("%s\n got %q\nwant %q", tc.reason, said, tc.want)
			}
			if len(tc.want) > maxWarning {
				t.Errorf("a warning of %d bytes is cut", len(tc.want))
			}
		})
	}
}
