// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

// The kinds that have, or are, contracts.
const (
	purchaseKind = "Purchase"
	saleKind     = "Sale"
	requestKind  = "CapacityRequest"
)

// maxName bounds the name of an object in a warning, in bytes, so that what is said of it has room.
const maxName = 40

// contract is what is read of a Purchase, a Sale or a CapacityRequest. The programs that serve this link nothing of trade.
type contract struct {
	Metadata struct {
		Name              string       `json:"name"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Suspended bool      `json:"suspended"`
		End       *struct{} `json:"end"`
	} `json:"spec"`
	Status struct {
		State    string   `json:"state"`
		Nodes    []string `json:"nodes"`
		PodsLeft int      `json:"podsLeft"`
		Purchase string   `json:"purchase"`
	} `json:"status"`
}

// terminating is the state in which the pods of the buyer leave.
const terminating = "Terminating"

// given reports whether in a state a seller gives something, or is about to; it ends it with notice.
func given(state string) bool {
	return slices.Contains([]string{"Signed", "Provisioning", "Active", "Resizing", "Suspended"}, state)
}

// paid reports whether a buyer that ends a contract in a state pays on.
func paid(state string) bool { return state == "Active" || state == "Resizing" }

// ends reports whether somebody wants the contract to end.
func (c *contract) ends() bool { return c.Spec.End != nil || c.Metadata.DeletionTimestamp != nil }

// over reports whether in a state there is nothing to lose any more. Of states that it does not know it says no.
func over(state string) bool {
	return slices.Contains([]string{"Ended", "Rejected", "Expired", "Failed"}, state)
}

// Contracts is a Preview that says what it means to end a contract or to suspend it, by what the object itself says. Which pods run on it
// no object tells before they leave.
func Contracts(_ context.Context, req *admission.Request) (string, error) {
	if req.Kind.Group != v1alpha1.Group || !slices.Contains([]string{purchaseKind, saleKind, requestKind}, req.Kind.Kind) {
		return "", nil
	}
	deleted := req.Operation == admissionv1.Delete
	if !deleted && req.Operation != admissionv1.Update {
		return "", nil
	}
	var before, after contract
	if json.Unmarshal(req.OldObject.Raw, &before) != nil || !deleted && json.Unmarshal(req.Object.Raw, &after) != nil {
		return "", nil //nolint:nilerr // Others say what of it cannot be read.
	}
	if before.ends() || over(before.Status.State) {
		return "", nil // It was said before, or there is nothing to lose.
	}
	name := req.Kind.Kind + " " + excerpt.Of(before.Metadata.Name, maxName)
	ends := deleted || after.Spec.End != nil
	switch {
	case req.Kind.Kind == requestKind && deleted:
		return ofRequest(name, &before, req.Options.Raw), nil
	case req.Kind.Kind == purchaseKind && ends:
		return ofPurchase(name, &before), nil
	case req.Kind.Kind != saleKind || before.Status.State == terminating:
		return "", nil
	case ends && given(before.Status.State):
		return name + " ends after the agreed notice, which cannot be taken back. The pods of its buyer have to leave this cluster then, " +
			"unless other contracts have room for them.", nil
	case ends:
		return name + " ends, which cannot be taken back.", nil
	case after.Spec.Suspended && !before.Spec.Suspended:
		return name + " gives its buyer nothing while it is suspended, and costs nothing: the pods of its buyer have to leave this cluster, " +
			"unless other contracts have room for them.", nil
	default:
		return "", nil
	}
}

// ofPurchase says what it means to end a purchase: the buyer leaves at once.
func ofPurchase(name string, p *contract) string {
	says := name + " ends, which cannot be taken back"
	on := several(len(p.Status.Nodes), "virtual node")
	if len(p.Status.Nodes) == 1 {
		on = "node " + excerpt.Of(p.Status.Nodes[0], maxName)
	}
	switch {
	case p.Status.PodsLeft > 0:
		says += ": " + several(p.Status.PodsLeft, "pod") + " have not left yet"
	case len(p.Status.Nodes) > 0:
		says += ": the pods on " + on + " have to leave, unless other contracts have room for them"
	}
	if paid(p.Status.State) {
		says += ". It is paid for the time of notice, at most until its end"
	}
	return says + "."
}

// ofRequest says what it means to delete a request, unless what belongs to it is to stay.
func ofRequest(name string, r *contract, options []byte) string {
	var how metav1.DeleteOptions
	if r.Status.Purchase == "" || len(options) > 0 && json.Unmarshal(options, &how) != nil {
		return ""
	}
	orphans := how.OrphanDependents != nil && *how.OrphanDependents //nolint:staticcheck // Clients may still ask like that.
	if orphans || how.PropagationPolicy != nil && *how.PropagationPolicy == metav1.DeletePropagationOrphan {
		return ""
	}
	return fmt.Sprintf("The contract of %s ends with it: Purchase %s is deleted, and the pods on its nodes leave.", name,
		excerpt.Of(r.Status.Purchase, maxName))
}
