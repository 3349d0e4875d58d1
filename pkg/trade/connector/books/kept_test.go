// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books

import (
	"strings"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// TestKept keeps of a Sale what is asked for often: a cache that keeps all that a buyer can have it write would fill the memory.
func TestKept(t *testing.T) {
	const large = 64 << 10
	key := contract.Key{Buyer: "b", ID: "c"}
	for state, signed := range map[contract.State]bool{contract.Active: true, contract.Ended: true, contract.Expired: false} {
		t.Run(string(state), func(t *testing.T) {
			record := contract.Record{View: contract.View{Key: key, Version: 7, State: state}}
			if signed {
				record.Signature, record.Countersignature = "signature", "countersignature"
				record.Superseded = []contract.Superseded{{Countersignature: strings.Repeat("s", large)}}
			}
			sale := &connectorv1alpha1.Sale{
				ObjectMeta: metav1.ObjectMeta{Name: "s", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
				Spec:       connectorv1alpha1.SaleSpec{Buyer: "b", ContractID: "c"},
			}
			text, err := encode(record)
			if err != nil {
				t.Fatal(err)
			}
			describeSale(&sale.Status, record, text)
			for range 2 { // A cache can ask for it again.
				if kept, err := Kept(sale); err != nil || kept != any(sale) {
					t.Fatalf("kept %v, %v", kept, err)
				}
			}
			if sale.ManagedFields != nil || len(sale.Status.Superseded) > 0 || len(sale.Status.Record) > large {
				t.Errorf("it has %d entries of who wrote what, %d superseded terms, and a record of %d bytes",
					len(sale.ManagedFields), len(sale.Status.Superseded), len(sale.Status.Record))
			}
			k := known(sale)
			if k.Record == nil || k.Record.State != state || k.Record.Signed() != signed || k.bytes != len(sale.Status.Record) {
				t.Fatalf("known is %+v", k)
			}
			if state == contract.Active && (k.Record.Signature != record.Signature || k.Record.Countersignature != record.Countersignature) {
				t.Errorf("an open contract is shown with other signatures: %+v", k.Record)
			}
		})
	}
	unreadable := &connectorv1alpha1.Sale{}
	unreadable.Status.Record = "{"
	if _, err := Kept(unreadable); err != nil || unreadable.Status.Record != "{" {
		t.Errorf("what cannot be read is kept as %q, %v", unreadable.Status.Record, err)
	}
	if other, err := Kept("other"); err != nil || other != "other" {
		t.Errorf("something else is kept as %v, %v", other, err)
	}
}

// TestSignaturesOnce holds that what is known of a contract has no signatures of its own: they are most of it.
func TestSignaturesOnce(t *testing.T) {
	sale := &connectorv1alpha1.Sale{Spec: connectorv1alpha1.SaleSpec{Buyer: "b", ContractID: "c"}}
	signature, countersignature := strings.Repeat("s", 64<<10), strings.Repeat("c", 64<<10)
	text, err := encode(contract.Record{View: contract.View{
		Key: Key(sale), Version: 1, State: contract.Active, Signature: signature, Countersignature: countersignature,
	}})
	if err != nil {
		t.Fatal(err)
	}
	sale.Status.Record = text
	record := known(sale).Record
	if record.Signature != signature || record.Countersignature != countersignature {
		t.Fatal("other signatures")
	}
	for what, part := range map[string]string{"signature": record.Signature, "countersignature": record.Countersignature} {
		if !partOf(text, part) {
			t.Errorf("the %s is kept twice", what)
		}
	}
}

// partOf reports whether one text is in the memory of another.
func partOf(whole, part string) bool {
	begin, at := uintptr(unsafe.Pointer(unsafe.StringData(whole))), uintptr(unsafe.Pointer(unsafe.StringData(part)))
	return begin <= at && at+uintptr(len(part)) <= begin+uintptr(len(whole))
}
