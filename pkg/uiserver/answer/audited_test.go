// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// auditPolicy has the API server write down who has written which objects of the project, once it is done. That a deletion is only tried is
// in its body.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
  - {level: Request, verbs: [delete], resources: [{group: brokering.liqo.io}]}
  - {level: Metadata, verbs: [create, update, patch, deletecollection], resources: [{group: brokering.liqo.io}]}
  - {level: None}
`

// whole are policies whose texts are their names, and which an API server takes.
type whole struct{ written }

func (whole) Object(text string) (map[string]any, error) {
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "PlacementPolicy", "metadata": map[string]any{"name": text},
		"spec": map[string]any{"appliesTo": map[string]any{"scope": "OnRequest"}},
	}, nil
}

// audited does all that the page can do, each first as a dry run: the API server's audit log has each of it once, under the person's name,
// and no more.
func (k *kubernetes) audited(t *testing.T) {
	const person = "frank@example.org"
	k.grant(person, rbacv1.PolicyRule{APIGroups: []string{"brokering.liqo.io"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	party := connectorv1alpha1.PartyID(strings.Repeat("a", 52))
	sold := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s-one"}}
	sold.Spec.Buyer, sold.Spec.ContractID = party, "c1"
	bought := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	bought.Spec.Seller, bought.Spec.Offer, bought.Spec.Plan = party, "compute", "small"
	bought.Spec.Duration = &metav1.Duration{Duration: time.Hour}
	bought.Spec.MaxPrice = &connectorv1alpha1.Price{Amount: "1", Currency: "EUR", Period: "PT1H"}
	manifest, err := os.ReadFile("../../../deploy/examples/trade/offer.yaml")
	k.do(err)
	var own connectorv1alpha1.Offer
	k.do(yaml.UnmarshalStrict(manifest, &own))
	turin := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "turin"}}
	rome := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "rome"}}
	for _, object := range []client.Object{sold, bought, &own, turin, rome} {
		k.do(k.client.Create(t.Context(), object))
	}

	s := k.serveAs(person, Config{Broker: true, Trades: true, Policies: whole{}})
	want := map[string]int{}
	for _, deed := range []struct{ method, path, body, written string }{
		{http.MethodPut, "providers/turin/scheduling", `{"scheduling":"Drained"}`, "patch providers turin"},
		{http.MethodPut, "consumers/rome/scheduling", `{"scheduling":"Suspended"}`, "patch consumers rome"},
		{http.MethodPut, "policies/near", `{"policy":"near"}`, "patch placementpolicies near"},
		{
			http.MethodPost, "orders", `{"name":"need","duration":"1h","resources":{"cpu":"1","memory":"1Gi","pods":"1"}}`,
			"create capacityrequests need",
		},
		{http.MethodDelete, "requests/need", "", "delete capacityrequests need"},
		{http.MethodPost, "contracts/sells/s-one/suspend", `{"version":"1"}`, "update sales s-one"},
		{http.MethodPost, "contracts/buys/nightly/end", `{"version":"1"}`, "update purchases nightly"},
		{http.MethodPut, "ownoffers/compute/sale", `{"sale":"Closed"}`, "patch offers compute"},
	} {
		for _, dry := range []string{"?dryRun=All", ""} {
			var said struct{ Detail string }
			if status := k.ask(s, deed.method, "/api/v1/"+deed.path+dry, deed.body, &said); status != http.StatusOK {
				t.Fatalf("%s %s%s: %d %s", deed.method, deed.path, dry, status, said.Detail)
			}
			want[deed.written+dry]++
		}
	}

	// It is written down a moment after it was answered.
	var got map[string]map[string]int
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if got = k.written(); len(got[person]) >= len(want) {
			break
		}
	}
	if diff := cmp.Diff(want, got[person]); diff != "" {
		t.Errorf("what stands under the name of %s, -want +got\n%s", person, diff)
	}
	for who, all := range got {
		for deed := range want {
			if who != person && all[deed] > 0 {
				t.Errorf("%s stands under the name %s", deed, who)
			}
		}
	}
}

// written returns what has been written, by the name under which it stands in the audit log: how often, as "verb resource name", and how it
// was tried if it was.
func (k *kubernetes) written() map[string]map[string]int {
	k.t.Helper()
	log, err := os.ReadFile(k.audit)
	k.do(err)
	all := map[string]map[string]int{}
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // It is being written.
		}
		var event auditv1.Event
		k.do(json.Unmarshal(line, &event))
		if event.ResponseStatus == nil || event.ResponseStatus.Code >= http.StatusMultipleChoices {
			continue // It was refused.
		}
		asked, err := url.Parse(event.RequestURI)
		k.do(err)
		dry := asked.Query()["dryRun"]
		if event.RequestObject != nil {
			var options metav1.DeleteOptions
			k.do(json.Unmarshal(event.RequestObject.Raw, &options))
			dry = append(dry, options.DryRun...)
		}
		who := event.User.Username
		if event.ImpersonatedUser != nil {
			who = event.ImpersonatedUser.Username
		}
		if all[who] == nil {
			all[who] = map[string]int{}
		}
		deed := fmt.Sprintf("%s %s %s", event.Verb, event.ObjectRef.Resource, event.ObjectRef.Name)
		if len(dry) > 0 {
			deed += "?dryRun=" + strings.Join(dry, ",")
		}
		all[who][deed]++
	}
	return all
}
