// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/webhook/isolation"
	"github.com/capacitorset/liqo-broker/pkg/webhook/services"
	policies "github.com/capacitorset/liqo-broker/test/admission"
)

type object = map[string]any

// judge is an API server of the broker b, to which c consumes and p provides, with the policies and the rules of the webhooks of this
// repository. It keeps what is no dry run.
type judge struct {
	tb       testing.TB
	policies map[string]policies.Spec
	isolate  *isolation.Handler
	confine  *services.Confinement
	objects  map[string]object
	// given is how many cluster IPs it has given.
	given int
	// away tells that no webhook answers, and stock that there is nothing of this repository.
	away, stock bool
}

const peeringUser = "liqo-peer-user-n-0123456789abcdef0123456789abcdef"

func newJudge(t *testing.T) *judge {
	t.Helper()
	const folder = "../../deploy/guard/policies/"
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), addBuiltIn(scheme)); err != nil {
		t.Fatal(err)
	}
	level, err := isolation.ParseLevel("baseline")
	if err != nil {
		t.Fatal(err)
	}
	isolate, err := isolation.New(v1.Line{}, scheme, level)
	if err != nil {
		t.Fatal(err)
	}
	request, err := SigningRequest(pkix.Name{CommonName: commonName("big", "c"), Organization: []string{"c"}})
	if err != nil {
		t.Fatal(err)
	}
	configuration := func(pods string) object {
		return object{
			"metadata": object{}, "spec": object{"remote": object{}}, "status": object{"remote": object{"cidr": object{"pod": []any{pods}}}},
		}
	}
	of := func(id string, more object) object {
		return object{"metadata": object{"labels": with(copyOf("c", "b"), object{"liqo.io/remote-cluster-id": id})}, "spec": more}
	}
	own := object{"liqo.io/replication": "true", "liqo.io/remoteID": "p", "liqo.io/remote-cluster-id": "p"}
	j := &judge{
		tb: t, isolate: isolate, confine: services.NewConfinement(scheme, nil), objects: map[string]object{
			"ResourceSlice/tenant-c/big": of("c", object{
				"class": "liqo-broker", "consumerClusterID": "c", "providerClusterID": "b", "csr": base64.StdEncoding.EncodeToString(request),
			}),
			"NamespaceMap/tenant-c/b":  of("c", object{"desiredMapping": object{"db": "db-c"}}),
			"ResourceSlice/tenant-p/p": {"metadata": object{"labels": own}, "spec": object{"class": "default"}},
			"NamespaceMap/tenant-p/p":  {"metadata": object{"labels": own}, "spec": object{"desiredMapping": object{"db": "db-b"}}},
			"Configuration/tenant-c/c": configuration("10.71.0.0/18"), "Configuration/tenant-p/p": configuration("10.72.0.0/18"),
			"Tenant/tenant-n/n": {
				"metadata": object{"labels": object{"liqo.io/remote-cluster-id": "n"}}, "spec": object{"clusterID": "n", "tenantCondition": "Drained"},
			},
		},
		policies: policies.Policies(
			t, folder+"peers-liqo1.yaml", folder+"twins.yaml", folder+"system-namespaces/system-namespaces.yaml", folder+"services.yaml",
		),
	}
	return j
}

// servicesOf are what Services are as a resource.
const servicesOf = "services"

func addBuiltIn(s *runtime.Scheme) error { return scheme.AddToScheme(s) }

// commonName is for whom the certificate of a ResourceSlice is.
func commonName(slice, id string) string {
	hash := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%s-%x", slice, hash[:6])
}

// as returns the API of the cluster for somebody.
func (j *judge) as(user string, groups ...string) caller {
	base := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()
	ask := func(operation, subresource string, o, old object, kind, namespace string) error {
		return j.answer(policies.Request{
			Operation: operation, Subresource: subresource, User: user, Groups: append(groups, "system:authenticated"), Object: o, Old: old,
			Namespace: namespace, Group: groupOf(kind), Resource: resourceOf(kind),
		})
	}
	key := func(o client.Object) string { return kindOf(o) + "/" + o.GetNamespace() + "/" + o.GetName() }
	keep := func(err error, dry []string, o client.Object) error {
		if err == nil && len(dry) == 0 {
			j.objects[key(o)] = runtime.DeepCopyJSON(o.(*unstructured.Unstructured).Object)
		}
		return err
	}
	is := func(o client.Object) (object, error) {
		old, found := j.objects[key(o)]
		if !found {
			return nil, fmt.Errorf("there is no %s", key(o))
		}
		old = runtime.DeepCopyJSON(old)
		old["metadata"].(object)["name"], old["metadata"].(object)["namespace"] = o.GetName(), o.GetNamespace()
		return old, nil
	}
	return caller{DryRun: true, api: interceptor.NewClient(base, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			old, err := is(o)
			if err == nil {
				maps.Copy(o.(*unstructured.Unstructured).Object, old)
			}
			return err
		},
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if request, is := o.(*certificatesv1.CertificateSigningRequest); is {
				return j.sign(request.Spec.Request)
			}
			if o.GetName() == "" {
				o.SetName(o.GetGenerateName() + "x")
			}
			err := ask("CREATE", "", o.(*unstructured.Unstructured).Object, nil, kindOf(o), o.GetNamespace())
			return keep(err, (&client.CreateOptions{}).ApplyOptions(options).DryRun, o)
		},
		Update: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			old, err := is(o)
			err = errors.Join(err, ask("UPDATE", "", o.(*unstructured.Unstructured).Object, old, kindOf(o), o.GetNamespace()))
			return keep(err, (&client.UpdateOptions{}).ApplyOptions(options).DryRun, o)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			old, err := is(o)
			err = errors.Join(err, ask("DELETE", "", nil, old, kindOf(o), o.GetNamespace()))
			if err == nil && len((&client.DeleteOptions{}).ApplyOptions(options).DryRun) == 0 {
				delete(j.objects, key(o))
			}
			return err
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, sub string, o client.Object, _ ...client.SubResourceUpdateOption) error {
			old, err := is(o)
			return errors.Join(err, ask("UPDATE", sub, o.(*unstructured.Unstructured).Object, old, kindOf(o), o.GetNamespace()))
		},
	})}
}

func kindOf(o client.Object) string { return o.GetObjectKind().GroupVersionKind().Kind }

// groupOf and resourceOf are what the API server calls a kind.
func groupOf(kind string) string {
	switch kind {
	case sliceKind, renewKind, tenantKind:
		return api.AuthenticationGroup
	case mapKind, offloadingKind, "ShadowPod":
		return api.OffloadingGroup
	case configurationKind:
		return api.NetworkingGroup
	case "IP":
		return api.IPAMGroup
	default:
		return ""
	}
}

func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// labelsOf are those of a namespace.
func labelsOf(namespace string) map[string]string {
	switch prefix, id, _ := strings.Cut(namespace, "-"); prefix {
	case "tenant":
		return map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": id}
	case "twin":
		return map[string]string{"liqo.io/remote-cluster-id": id}
	default:
		return nil
	}
}

func denied(webhook string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("admission webhook %q denied the request: %w", webhook+rulesGroup, err)
}

func (j *judge) unasked(webhook string) error {
	return fmt.Errorf("Internal error occurred: failed calling webhook %q", webhook+rulesGroup)
}

// answer returns what the API server answers: it asks webhooks that change what is written, then policies, then other webhooks.
func (j *judge) answer(r policies.Request) error {
	r.Labels = labelsOf(r.Namespace)
	r.Params = object{"data": object{"CLUSTER_ID": "b"}, "metadata": object{"namespace": "liqo"}}
	if !j.stock {
		if err := errors.Join(j.class(r), j.confined(r)); err != nil {
			return err
		}
	}
	if r.Resource == servicesOf && r.Operation != "DELETE" {
		j.allocate(r)
	}
	if j.stock {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(j.policies)) {
		if refusals, _ := policies.Refusals(j.tb, j.policies[name], r); len(refusals) > 0 {
			return errors.New(rule{policy: name, message: refusals[0]}.answer())
		}
	}
	return j.webhooks(r)
}

// class is the webhook that gives a ResourceSlice of a peer another class.
func (j *judge) class(r policies.Request) error {
	if r.Resource != resourceOf(sliceKind) || r.Subresource != "" || r.Operation == "DELETE" ||
		r.Object["metadata"].(object)["labels"].(object)["liqo.io/replicated"] != "true" {
		return nil
	}
	if j.away {
		return j.unasked("class")
	}
	text, err := json.Marshal(r.Object)
	if err != nil {
		return err
	}
	changed, err := v1.Reclass(text)
	if err != nil || changed == nil {
		return err
	}
	return json.Unmarshal(changed, &r.Object)
}

// confined is the webhook that changes Services of peers.
func (j *judge) confined(r policies.Request) error {
	if r.Resource != servicesOf || r.Operation == "DELETE" {
		return nil
	}
	if j.away {
		return j.unasked(confines)
	}
	old, err := marshal(r.Old)
	if err != nil {
		return err
	}
	is, err := marshal(r.Object)
	if err != nil {
		return err
	}
	answer := j.confine.Handle(j.tb.Context(), webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Operation(r.Operation), Object: runtime.RawExtension{Raw: is}, OldObject: runtime.RawExtension{Raw: old},
	}})
	if !answer.Allowed || len(answer.Patches) == 0 {
		return nil
	}
	text, err := json.Marshal(answer.Patches)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return err
	}
	if is, err = patch.Apply(is); err != nil {
		return err
	}
	return json.Unmarshal(is, &r.Object)
}

// allocate gives a Service a cluster IP as the API server does, which asks webhooks before that change what is written.
func (j *judge) allocate(r policies.Request) {
	spec := r.Object["spec"].(object)
	old, _, _ := unstructured.NestedString(r.Old, "spec", "clusterIP")
	switch {
	case spec["type"] == "ExternalName":
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
		return
	case spec["clusterIP"] == nil && old != "":
		spec["clusterIP"] = old
	case spec["clusterIP"] == nil:
		j.given++
		spec["clusterIP"] = fmt.Sprintf("10.96.0.%d", j.given)
	}
	spec["clusterIPs"] = []any{spec["clusterIP"]}
}

// webhooks are those of the guard.
func (j *judge) webhooks(r policies.Request) error {
	old, err := marshal(r.Old)
	if err != nil {
		return err
	}
	is, err := marshal(r.Object)
	if err != nil {
		return err
	}
	w := &peerwrite.Write{
		User: r.User, Groups: r.Groups, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Old: old, New: is,
	}
	rules, tenant, id := v1.Line{}.PeerRules(), r.Labels["liqo.io/tenant-namespace"] != "", cluster.ID(r.Labels["liqo.io/remote-cluster-id"])
	switch {
	case r.Resource == "shadowpods":
		if j.away {
			return j.unasked("allowance")
		}
		answer := j.isolate.Handle(j.tb.Context(), webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Kind: "ShadowPod"}, Object: runtime.RawExtension{Raw: is},
		}})
		if answer.Allowed {
			return nil
		}
		return denied("isolate", errors.New(answer.Result.Message))
	case r.Resource == "configurations" && r.Subresource == "status":
		if j.away {
			return nil // It is not waited for.
		}
		return denied("tunnels", route(old, is))
	case tenant && rules.IsPeer(w, id) && r.Resource != "secrets":
		if j.away {
			return j.unasked(peers1)
		}
		return denied(peers1, rules.Check(w, id, "b"))
	case tenant && !j.away:
		return denied(copied1, rules.CheckCopied(w))
	}
	return nil
}

func marshal(o object) ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	return json.Marshal(o)
}

// route is what webhook tunnels says, where p is seen at 10.72.0.0/18 and a node is at 172.30.0.2.
func route(old, is []byte) error {
	rules := v1.Line{}.NetworkRules()
	before, err := rules.Routed(old)
	if err != nil {
		return err
	}
	added, err := rules.Routed(is)
	if err != nil {
		return err
	}
	added = slices.DeleteFunc(added, func(p netip.Prefix) bool { return slices.Contains(before, p) })
	p := liqo.Link{Peer: "p", Seen: []netip.Prefix{netip.MustParsePrefix("10.72.0.0/18")}}
	if err := rules.CheckNetwork(old, is, added, []liqo.Link{p}); err != nil {
		return err
	}
	for _, prefix := range added {
		if prefix.Contains(netip.MustParseAddr("172.30.0.2")) {
			return fmt.Errorf("the peer would receive the traffic to %s", prefix)
		}
	}
	return nil
}

// sign is what webhook guard-identities says.
func (j *judge) sign(text []byte) error {
	switch {
	case j.stock:
		return nil
	case j.away:
		return j.unasked("guard-identities")
	}
	block, _ := pem.Decode(text)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	asks, err := json.Marshal(j.objects["ResourceSlice/tenant-c/big"])
	if err != nil {
		return err
	}
	var slice api.ResourceSlice
	if err := json.Unmarshal(asks, &slice); err != nil {
		return err
	}
	slice.Name = "big"
	return denied("guard-identities", v1.CheckCSR(request, text, v1.Asked{Slices: []api.ResourceSlice{slice}}))
}

// rowsAt are all rows, tried at a judge.
func rowsAt(j *judge) []Row {
	guest := &Guest{ID: "c", At: "b", Tenant: "tenant-c", Slice: "big", Map: "b", Twin: "twin-c", Victim: "p", Node: "node"}
	guest.control, guest.slice = j.as("c", "liqo.io"), j.as(commonName("big", "c"), "c")
	newcomer := &Newcomer{ID: "n", Tenant: "tenant-n"}
	newcomer.caller = j.as(peeringUser, "liqo.io")
	insider := &Insider{
		Consumer: "c", Tenant: "tenant-c", Slice: "big", Provider: "p", ProviderTenant: "tenant-p", Asks: "p", Offloads: "p",
		Nodes: "172.30.0.0/24",
	}
	const accounts = "system:serviceaccounts"
	insider.manager = j.as("system:serviceaccount:liqo:liqo-controller-manager", accounts)
	insider.replicator = j.as("system:serviceaccount:liqo:liqo-crd-replicator", accounts)
	insider.administrator = j.as("admin", "system:masters")
	return slices.Concat(guest.Rows(), newcomer.Rows(), newcomer.Drained(), insider.Rows())
}

// TestRows asks the rules of this repository what rows say of them.
func TestRows(t *testing.T) {
	var all []string
	for name, is := range map[string]struct {
		reason      string
		away, stock bool
	}{
		"Guarded": {reason: "Each row is refused by the rule that it names, and honest people are not."},
		"Unasked": {reason: "Webhooks cannot be asked.", away: true},
		"Stock":   {reason: "There is Liqo alone.", stock: true},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge(t)
			j.away, j.stock = is.away, is.stock
			rows := rowsAt(j)
			could, err := TryAll(t.Context(), Attempts(rows, is.away), nil)
			if err != nil {
				t.Errorf("%s\n%v", is.reason, err)
			}
			want := Open(rows)
			switch {
			case is.stock:
				want = nil
				for i := range rows {
					want = append(want, rows[i].Name)
				}
			case !is.away:
				want = nil
			}
			if !slices.Equal(could, want) {
				t.Errorf("%s\ncould be done: %q, want %q", is.reason, could, want)
			}
			for i := range rows {
				if rows[i].Legal == nil || is.away {
					continue
				}
				if err := rows[i].Legal(t.Context()); err != nil {
					t.Errorf("%s\nhonest people are refused what is like %q: %v", is.reason, rows[i].Name, err)
				}
			}
			all = append(all, Open(rows)...)
		})
	}
	if len(all) == 0 {
		t.Error("no row is open while daemon and guard do not run")
	}
}
