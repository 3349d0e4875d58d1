// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// read begins with the blocks of a page that a test runs.
func read(t *testing.T, page, in string) *walk.Reader {
	t.Helper()
	r, err := fed.ReadRelease(page, in)
	if err != nil {
		t.Fatal(err)
	}
	return walk.Follow(t, r)
}

// anybody stands in the examples for a party.
var anybody = strings.Repeat("a", 52)

// TestOperator does what the pages say to who runs a registry: on a cluster, whose registry answers with the fingerprint that is printed,
// and on the machine of the registry, where a token that was deleted lets nobody in, who waits is approved, and who is revoked is out.
func TestOperator(t *testing.T) {
	r := read(t, "docs/trade/operator.md", "TestOperator")
	volume(t, fed.Broker)
	if err := fed.Load(t.Context(), "liqo-broker-registry", fed.Broker); err != nil {
		t.Fatal(err)
	}
	r.Next("kubectl apply -k deploy/registry")
	r.Next("kubectl -n liqo-broker-registry exec statefulset/liqo-broker-registry -- /usr/bin/registry parties list")
	invited, err := discovery.ParseInvitation(strings.TrimSpace(r.Next("registry invite")))
	if err != nil || invited.URL != "https://registry.example:30443" || invited.Fingerprint != registry.Fingerprint || invited.Token == "" {
		t.Errorf("the registry invites to %s with the key %s, %v", invited.URL, invited.Fingerprint, err)
	}
	tutorial := read(t, "docs/tutorials/trade.md", "TestOperator")
	if invited, err = discovery.ParseInvitation(strings.TrimSpace(tutorial.Next("registry invite"))); err != nil || invited.Token == "" {
		t.Errorf("the registry of the tutorial invites by %+v, %v", invited, err)
	}
	tutorial.End()
	fingerprint := strings.TrimSpace(
		r.Next("kubectl -n liqo-broker-registry exec statefulset/liqo-broker-registry -- /usr/bin/registry fingerprint"),
	)
	first, second := newStranger(t, newParty(t)), newStranger(t, newParty(t))
	for _, s := range []*stranger{first, second} {
		s.Clusters = []registryv1.Cluster{{ID: s.ID[:8]}}
	}
	inCluster := first.at(t, fmt.Sprintf("https://%s:30443", fed.Broker.Lab.Address), fingerprint)
	eventually(t, time.Minute, func(ctx context.Context) error {
		return answers(ctx, inCluster, registryv1.PathRegistry, http.StatusOK)
	})

	// A token is worth nothing when it was deleted.
	token, listed, _ := strings.Cut(r.Next("registry tokens create"), "\n")
	id := store.Digest(token)[:12]
	if !strings.Contains(listed, id) || !strings.Contains(listed, "for whom") {
		t.Errorf("token %s is not listed:\n%s", id, listed)
	}
	r.Values["TOKEN_ID"] = id
	r.Next("registry tokens delete")
	enrolled := func(s *stranger) string { return registryv1.Base + "/parties/" + s.ID }
	atFirst := first.at(t, registry.URL, registry.Fingerprint)
	if status, said, err := atFirst.call(t.Context(), http.MethodPut, enrolled(first), first.Enrolment(t, 1, token)); err != nil ||
		status < 400 || status >= 500 {
		t.Errorf("a token that was deleted: %d %s, %v", status, said, err)
	}

	// Who has none waits for the operator, who lets in and puts out.
	atFirst.get(t, http.MethodPut, enrolled(first), first.Enrolment(t, 2, ""), nil)
	r.Values["PARTY"] = first.ID
	r.Next("registry parties revoke")
	admits := read(t, "docs/trade/registry.md", "TestOperator")
	admits.Values["PARTY"] = second.ID
	atSecond := second.at(t, registry.URL, registry.Fingerprint)
	atSecond.get(t, http.MethodPut, enrolled(second), second.Enrolment(t, 1, ""), nil)
	if said := admits.Next("registry tokens create"); !strings.Contains(said, second.ID+" approved") || strings.Contains(said, first.ID) {
		t.Errorf("only %s waits, and is approved:\n%s", second.ID, said)
	}
	reads := func(of caller, status int) {
		t.Helper()
		eventually(t, time.Minute, func(ctx context.Context) error { return answers(ctx, of, registryv1.PathOffers, status) })
	}
	reads(atSecond, http.StatusOK)
	reads(atFirst, http.StatusForbidden)
	if said := admits.Next("registry parties revoke"); !strings.Contains(said, second.ID+" revoked") {
		t.Errorf("%s is not revoked:\n%s", second.ID, said)
	}
	reads(atSecond, http.StatusForbidden)
	admits.End()

	// What the text says besides: the schema is that of this program, and who waits is forgotten.
	if said := strings.TrimSpace(admits.Said("registry", "registry fingerprint")); said != registry.Fingerprint {
		t.Errorf("the fingerprint is %s, want %s", said, registry.Fingerprint)
	}
	r.Said("registry", "registry migrate")
	third := newStranger(t, newParty(t))
	third.Clusters = []registryv1.Cluster{{ID: third.ID[:8]}}
	third.at(t, registry.URL, registry.Fingerprint).get(t, http.MethodPut, enrolled(third), third.Enrolment(t, 1, ""), nil)
	if said := r.Said("registry", "registry parties drop --pending"); !strings.Contains(said, "parties dropped") ||
		strings.HasPrefix(said, "0 ") {
		t.Errorf("who waits is not forgotten:\n%s", said)
	}

	r.Next("kubectl delete -k deploy/registry")
	r.End()
}

// answers fails unless a path of a registry is answered with a status.
func answers(ctx context.Context, from caller, path string, want int) error {
	status, said, err := from.call(ctx, http.MethodGet, registryv1.Base+path, nil)
	if err == nil && status != want {
		err = fmt.Errorf("%s: %d %.512s, want %d", path, status, said, want)
	}
	return err
}

// volume makes a volume for a registry, until the test ends: the lab has no StorageClass.
func volume(t *testing.T, on *federation.Cluster) {
	t.Helper()
	const folder = "/var/lib/registry-volume"
	run := func(ctx context.Context, args ...string) {
		if err := on.Lab.Exec(ctx, node.Command{Args: args}); err != nil {
			t.Error(err)
		}
	}
	remove := func(ctx context.Context) {
		if _, err := on.Kubectl(ctx, "delete", "persistentvolume", "registry", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
		run(ctx, "rm", "-rf", folder)
	}
	remove(t.Context())
	run(t.Context(), "mkdir", "-p", "-m", "777", folder)
	err := on.ApplyManifests(t.Context(), `
apiVersion: v1
kind: PersistentVolume
metadata: {name: registry}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {path: `+folder+`}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: lab/real, operator: In, values: ["true"]}]}]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := on.Kubectl(ctx, "delete", "namespace", "liqo-broker-registry", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
		remove(ctx)
	})
}

// eighths is what of the examples the lab sells, in cores, memory and pods.
func eighths(cpu, memory, pods string) v1alpha1.Quantities {
	return v1alpha1.Quantities{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: resource.MustParse(pods),
	}
}

// TestTraders does what the pages say to a buyer and a seller, who were set up by what they say too: one offers, the other buys three
// times, uses what it has bought, and both leave, after which nothing of us is there but what the pages name. They come back by the
// tutorial alone, and then either cluster is set up exactly as the federation of the tests has set it up: that adds nothing. What the
// tutorial and the pages both say is done once, as the tutorial says it.
func TestTraders(t *testing.T) {
	clean(t)
	both := []*federation.Cluster{fed.Consumer, fed.ProviderA}
	var before []map[string]string
	for _, c := range both {
		before = append(before, setUp(t, c))
	}
	// By Helm and by kubectl the same is set up.
	programs := []string{"liqo-broker-connector", "liqo-broker-guard"}
	if diff := cmp.Diff(parts(t, fed.ProviderA, programs...), parts(t, fed.ProviderB, programs...)); diff != "" {
		t.Errorf("what trades on provider-b is otherwise than on provider-a (-a +b):\n%s", diff)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, c := range both { // The other journeys need both.
			if err := fed.JoinMarket(context.WithoutCancel(t.Context()), registry, c); err != nil {
				t.Error(err)
			}
		}
	})
	buys, sells := read(t, "docs/trade/buyer.md", "TestTraders"), read(t, "docs/trade/provider.md", "TestTraders")
	bills, tutorial := read(t, "docs/trade/billing.md", "TestTraders"), read(t, "docs/tutorials/trade.md", "TestTraders")

	party := seller(t, fed.ProviderA)
	if said := sells.Next("kubectl -n liqo-broker-connector logs"); !strings.Contains(said, string(party)) {
		t.Errorf("the log does not say that the party is %s:\n%s", party, said)
	}
	if said := sells.Next("kubectl liqo-broker diagnose"); !strings.Contains(said, "\nConnector\n") {
		t.Errorf("nothing is said of the connector:\n%s", said)
	}
	buyer := string(seller(t, fed.Consumer))
	if said := tutorial.Next("kubectl -n liqo-broker-connector logs"); !strings.Contains(said, buyer) {
		t.Errorf("the log does not say that the party is %s:\n%s", buyer, said)
	}
	tutorial.Edit("deploy/examples/trade/offer.yaml", anybody, buyer)
	tutorial.InsteadOf(sells, "kubectl apply -f deploy/examples/trade/offer.yaml")
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Published(ctx, fed.ProviderA) })

	// What the consumer needs, what it sees and chooses, and what it orders from that seller, who has to agree.
	tutorial.InsteadOf(buys, "kubectl apply -f deploy/examples/trade/capacityrequest.yaml")
	has := func(want v1alpha1.Quantities) {
		t.Helper()
		eventually(t, 2*time.Minute, func(ctx context.Context) error { return fed.Consumer.HasBought(ctx, fed.ProviderA, want) })
	}
	has(eighths("250m", "512Mi", "6"))
	tutorial.Next("kubectl liqo-broker contracts show nightly")
	if said := buys.Next("kubectl liqo-broker offers"); !strings.Contains(said, "compute/small") || strings.Count(said, " buys ") != 2 {
		t.Errorf("an offer is not seen, or there are not two contracts:\n%s", said)
	}
	has(eighths("500m", "1Gi", "12"))
	if said := buys.Said("consumer", "kubectl liqo-broker offers --output wide"); !strings.Contains(said, string(party)) {
		t.Errorf("the seller's party is not shown:\n%s", said)
	}
	end := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	buys.Edit("deploy/examples/trade/purchase.yaml", anybody, string(party), "2027-01-31T18:00:00Z", end)
	buys.Next("kubectl apply -f deploy/examples/trade/purchase.yaml")
	eventually(t, time.Minute, func(ctx context.Context) error {
		var sales connectorv1alpha1.SaleList
		if err := fed.ProviderA.List(ctx, &sales); err != nil {
			return err
		}
		for i := range sales.Items {
			if sales.Items[i].Status.State == string(contract.Proposed) {
				sells.Values["SALE"] = sales.Items[i].Name
				return nil
			}
		}
		return fmt.Errorf("of %d sales none waits for an approval", len(sales.Items))
	})
	if said := sells.Next("kubectl liqo-broker contracts"); !strings.Contains(said, "AwaitsApproval") {
		t.Errorf("nobody has to approve the sale:\n%s", said)
	}
	has(eighths("875m", "1792Mi", "16"))
	if said := sells.Said("provider-a", "kubectl liqo-broker contracts --output wide"); !strings.Contains(said, "TERMS") {
		t.Errorf("the documents of a contract are not shown:\n%s", said)
	}
	said := bills.Next("kubectl liqo-broker contracts export")
	if !strings.Contains(said, "BilledCost") || !strings.Contains(said, sells.Values["SALE"]) {
		t.Errorf("it is not said what is owed for sale %s:\n%s", sells.Values["SALE"], said)
	}
	bills.End()

	tutorial.InsteadOf(buys, "kubectl get nodes")
	copies, err := fed.Copies(t.Context(), "shop")
	if err != nil || len(copies) != 1 || copies[0].RunsOn != fed.ProviderA {
		t.Errorf("what was offloaded does not run on the seller: %+v, %v", copies, err)
	}
	for _, side := range []string{"--sold", "--bought"} {
		if said := tutorial.Next("kubectl liqo-broker contracts export"); !strings.Contains(said, "BilledCost") || strings.Count(said, "\n") < 3 {
			t.Errorf("the bill of what was %s has no contract:\n%s", side, said)
		}
	}
	tutorial.Next("kubectl delete namespace shop")
	if err := fed.Removed(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}

	// One contract is ended by its seller, and what is left of it by its buyer.
	if said := sells.Said("provider-a", "kubectl get sales --output wide"); !strings.Contains(said, sells.Values["SALE"]) {
		t.Errorf("sale %s is not listed:\n%s", sells.Values["SALE"], said)
	}
	sells.Said("provider-a", "kubectl patch sale SALE")
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return fed.Consumer.Is(ctx, &connectorv1alpha1.Purchase{}, "render", connectorv1alpha1.ConditionReady, connectorv1alpha1.ReasonEndedEarly)
	})
	buys.Said("consumer", "kubectl delete purchase render")
	if err := fed.Consumer.HasNoPurchase(t.Context(), "render"); err != nil {
		t.Error(err)
	}

	// What is to be removed by hand where Liqo has left it is what the commands select.
	buys.Values["PROVIDER_ID"] = string(fed.ProviderA.ID)
	leftovers := []string{"kubectl delete deployments", "kubectl delete nodes"}
	for _, command := range leftovers {
		text, err := buys.Command(command)
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(strings.Replace(text, "kubectl delete", "get --output=name", 1))
		if said, err := fed.Consumer.Kubectl(t.Context(), args...); err != nil || len(strings.Fields(said)) != 1 {
			t.Errorf("%s selects %q, want one: %v", text, said, err)
		}
	}

	// Both leave. The kinds stay that Helm keeps, and the namespace with the buyer's key.
	tutorial.InsteadOf(buys, "kubectl delete capacityrequests,purchases")
	tutorial.End()
	eventually(t, 2*time.Minute, func(ctx context.Context) error { return fed.Consumer.HasParted(ctx, fed.ProviderA) })
	for _, command := range leftovers {
		buys.Said("consumer", command)
	}
	buys.Said("consumer", "kubectl -n liqo rollout restart deployment liqo-gateway")
	if said, err := fed.Consumer.Kubectl(t.Context(), "-n", "liqo", "rollout", "status", "deployment", "liqo-gateway",
		"--timeout=1m"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	buys.Next("kubectl delete registries")
	buys.End()
	sells.Next("kubectl delete offers,sales")
	sells.Next("kubectl delete -k deploy/connector")
	sells.Next("kubectl liqo-broker unguard")
	sells.Said("provider-a", "kubectl get resourcerequests --all-namespaces")
	sells.End()
	for _, c := range both {
		for what, text := range setUp(t, c) {
			kept := c == fed.Consumer && (strings.HasPrefix(what, "CustomResourceDefinition ") || strings.Contains(what, "liqo-broker-connector/") ||
				what == "Namespace /liqo-broker-connector")
			if !kept && strings.Contains(what+text, "liqo-broker") {
				t.Errorf("%s has left, and has %s:\n%s", c.Name, what, text)
			}
		}
	}

	// Both come back. The seller has a new key: the operator puts out the party that it was.
	if err := registry.Revoke(t.Context(), string(party)); err != nil {
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(t.Context())
	for _, c := range both {
		group.Go(func() error { return comesBack(t, ctx, c) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, c := range both {
		eventually(t, time.Minute, func(ctx context.Context) error { return fed.AsSetUp(ctx, c, before[i]) })
		eventually(t, 2*time.Minute, func(ctx context.Context) error {
			return c.Is(ctx, &connectorv1alpha1.Registry{}, federation.RegistryName, connectorv1alpha1.ConditionFollowing,
				connectorv1alpha1.ReasonFollowing)
		})
	}
}

// parts returns what is set up of programs on a cluster.
func parts(t *testing.T, c *federation.Cluster, programs ...string) map[string]string {
	t.Helper()
	found, err := federation.PartsOf(c, setUp(t, c), programs...)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Errorf("%s has %d parts of %v", c.Name, len(found), programs)
	}
	return found
}

// comesBack does what the tutorial says to a cluster that is to trade.
func comesBack(t *testing.T, ctx context.Context, c *federation.Cluster) error {
	t.Helper()
	r, err := fed.ReadToJoin(ctx, "docs/tutorials/trade.md", registry, c)
	if err != nil {
		return err
	}
	return walk.Follow(t, r).All(ctx)
}

// setUp returns what is set up on a cluster.
func setUp(t *testing.T, c *federation.Cluster) map[string]string {
	t.Helper()
	found, err := fed.SetUp(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
