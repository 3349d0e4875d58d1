// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// then is when something was decided, and now when it is looked at.
func then() metav1.Time { return metav1.NewTime(time.Unix(1_000, 0).UTC()) }
func now() time.Time    { return time.Unix(2_000, 5).UTC() }

// sliceClient returns a client that holds objects, with statuses that are written apart.
func sliceClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), Line{}.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&api.ResourceSlice{}).
		WithInterceptorFuncs(funcs)
	for _, i := range (Line{}).Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	return b.Build()
}

func TestRequestsBy(t *testing.T) {
	asked := func(name string, change func(*api.ResourceSlice)) *api.ResourceSlice {
		s := fromConsumer(slice(api.SliceAccepted, ""))
		s.Name, s.Spec.Class, s.CreationTimestamp, s.Status.Resources = name, api.SliceClassBroker, then(), nil
		if change != nil {
			change(s)
		}
		return s
	}
	of := func(change func(*grant.Request)) []grant.Request {
		r := grant.Request{
			Name: "x", Made: then().Time, Authenticated: true, Wanted: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		}
		change(&r)
		return []grant.Request{r}
	}
	cases := map[string]struct {
		reason string
		change func(*api.ResourceSlice)
		want   []grant.Request
	}{
		"Asks": {"It is asked of this cluster.", func(*api.ResourceSlice) {}, of(func(*grant.Request) {})},
		"Waits": {"Liqo has not issued the certificate yet.", func(s *api.ResourceSlice) {
			s.Status.Conditions = nil
		}, of(func(r *grant.Request) { r.Authenticated = false })},
		"Accepted": {"It was answered before.", func(s *api.ResourceSlice) {
			s.Status = slice(api.SliceAccepted, api.SliceAccepted).Status
		}, of(func(r *grant.Request) {
			r.Verdict, r.Granted = grant.Accepted, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		})},
		"Denied": {"It was denied before.", func(s *api.ResourceSlice) {
			s.Status.Conditions = slice(api.SliceAccepted, api.SliceDenied).Status.Conditions
		}, of(func(r *grant.Request) { r.Verdict = grant.Denied })},
		"Ending": {"It is being deleted.", func(s *api.ResourceSlice) {
			s.DeletionTimestamp, s.Finalizers = new(then()), []string{"brokering.liqo.io/test"}
		}, of(func(r *grant.Request) { r.Ending = true })},
		"Cordoned": {"People have cordoned it.", func(s *api.ResourceSlice) {
			s.Annotations = map[string]string{api.AnnotationCordon: "true"}
		}, of(func(r *grant.Request) { r.Frozen = true })},
		"Uncordoned": {"They have not.", func(s *api.ResourceSlice) {
			s.Annotations = map[string]string{api.AnnotationCordon: "False"}
		}, of(func(*grant.Request) {})},
		"Unreadable": {"What it asks for cannot be read.", func(s *api.ResourceSlice) {
			s.Annotations = map[string]string{lenient.AnnotationUnreadable: "spec.resources[pods]: no quantity"}
		}, of(func(r *grant.Request) { r.Unreadable = "spec.resources[pods]: no quantity" })},

		"OfLiqo":  {"Liqo answers it.", func(s *api.ResourceSlice) { s.Spec.Class = api.SliceClassDefault }, nil},
		"OfOther": {"Somebody else answers it.", func(s *api.ResourceSlice) { s.Spec.Class = "other" }, nil},
		"Forged": {"It is in the name of another consumer.", func(s *api.ResourceSlice) {
			s.Spec.ConsumerClusterID = new("other")
		}, nil},
		"Ours": {"This cluster asks the peer.", func(s *api.ResourceSlice) {
			s.Labels = nil
			s.Spec.ConsumerClusterID, s.Spec.ProviderClusterID = new("own"), new("c")
		}, nil},
		"Elsewhere": {"It is in the tenant namespace of another peer.", func(s *api.ResourceSlice) { s.Namespace = "tenant-d" }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := sliceClient(t, interceptor.Funcs{}, asked("x", tc.change))
			got, err := RequestsBy(t.Context(), c, "own", &liqo.Peer{Identity: Identity("c"), Tenant: "tenant-c"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Values); diff != "" || len(got.Slices) != len(got.Values) {
				t.Errorf("%s\nRequestsBy(): %d slices, -want +got\n%s", tc.reason, len(got.Slices), diff)
			}
		})
	}
	c := sliceClient(t, interceptor.Funcs{}, asked("x", nil))
	if got, err := RequestsBy(t.Context(), c, "own", &liqo.Peer{Identity: Identity("c")}); err != nil || len(got.Values) > 0 {
		t.Errorf("a peer without a tenant namespace asks for %v, %v", got, err)
	}

	// A consumer that is cordoned gets nothing new, whatever another Tenant in its namespace says.
	for condition, frozen := range map[api.TenantCondition]bool{api.TenantCordoned: true, api.TenantActive: false, "": false} {
		tenant, other := tenantIn("tenant-c", "first", "c"), tenantIn("tenant-c", "a", "c")
		tenant.Spec.TenantCondition, other.CreationTimestamp = condition, metav1.NewTime(tenant.CreationTimestamp.Add(time.Hour))
		got, err := RequestsBy(t.Context(), sliceClient(t, interceptor.Funcs{}, asked("x", nil), tenant, other), "own",
			&liqo.Peer{Identity: Identity("c"), Tenant: "tenant-c"})
		if err != nil || len(got.Values) != 1 || got.Values[0].Frozen != frozen {
			t.Errorf("of a tenant that is %q: %+v, %v", condition, got.Values, err)
		}
	}
}

func TestRequestsByFails(t *testing.T) {
	broken := errors.New("broken")
	for _, kind := range []client.ObjectList{&api.ResourceSliceList{}, &api.TenantList{}} {
		c := sliceClient(t, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if fmt.Sprintf("%T", list) == fmt.Sprintf("%T", kind) {
					return broken
				}
				return c.List(ctx, list, options...)
			},
		})
		if _, err := RequestsBy(t.Context(), c, "own", &liqo.Peer{Identity: Identity("c"), Tenant: "tenant-c"}); !errors.Is(err, broken) {
			t.Errorf("without %T: %v", kind, err)
		}
	}
}

func TestAnswered(t *testing.T) {
	list := func(cpu string, more ...corev1.ResourceName) corev1.ResourceList {
		l := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		for _, name := range more {
			l[name] = resource.Quantity{}
		}
		return l
	}
	authenticated := api.ResourceSliceCondition{
		Type: api.SliceAuthentication, Status: api.SliceAccepted, Reason: "Liqo", Message: "says so", LastTransitionTime: then(),
	}
	decided := func(status api.SliceConditionStatus, reason, message string, since metav1.Time) api.ResourceSliceCondition {
		return api.ResourceSliceCondition{
			Type: api.SliceResources, Status: status, Reason: reason, Message: message, LastTransitionTime: since,
		}
	}
	status := func(resources corev1.ResourceList, conditions ...api.ResourceSliceCondition) api.ResourceSliceStatus {
		return api.ResourceSliceStatus{Resources: resources, Conditions: append([]api.ResourceSliceCondition{authenticated}, conditions...)}
	}
	toA := func(s api.ResourceSliceStatus) api.ResourceSliceStatus {
		s.NodeLabels, s.NodeSelector = map[string]string{liqo.LabelProvider: "a"}, map[string]string{liqo.LabelRemoteClusterID: "a"}
		return s
	}
	listing := func(s api.ResourceSliceStatus) api.ResourceSliceStatus {
		s.IngressClasses, s.LoadBalancerClasses = []api.IngressClass{{Name: "nginx", Default: true}}, []api.LoadBalancerClass{{Name: "metallb"}}
		return s
	}
	ofLiqo := toA(listing(status(list("9"), decided(api.SliceAccepted, "Liqo", "gives all", then()))))
	ofLiqo.StorageClasses, ofLiqo.NodeLabels = []api.StorageClass{{Name: "local"}}, map[string]string{"zone": "a"}
	yes := grant.Answer{Verdict: grant.Accepted, Granted: list("2"), Reason: "Yes", Message: "because"}
	yesA, no := yes, grant.Answer{Verdict: grant.Denied, Granted: list("0"), Reason: "No", Message: "not now"}
	yesA.Provider = "a"
	unknown := yes
	unknown.Unknown, unknown.Granted = true, list("0")
	later := metav1.NewTime(now().Truncate(time.Second))
	cases := map[string]struct {
		reason  string
		status  api.ResourceSliceStatus
		answer  grant.Answer
		classes NodeClasses
		want    *api.ResourceSliceStatus
	}{
		"Open": {"Nobody has decided.", status(nil), grant.Answer{Granted: list("2")}, NodeClasses{}, nil},
		"First": {
			"It is decided now.", status(nil), yes, NodeClasses{}, new(status(list("2"), decided(api.SliceAccepted, "Yes", "because", later))),
		},
		"Deny":    {"So is this.", status(nil), no, NodeClasses{}, new(status(list("0"), decided(api.SliceDenied, "No", "not now", later)))},
		"Nothing": {"It is so already.", status(list("2000m"), decided(api.SliceAccepted, "Yes", "because", then())), yes, NodeClasses{}, nil},
		"Amount": {
			"The condition is as old as before.", status(list("3"), decided(api.SliceAccepted, "Yes", "because", then())), yes, NodeClasses{},
			new(status(list("2"), decided(api.SliceAccepted, "Yes", "because", then()))),
		},
		"Zero": {
			"A zero is no missing key.", status(list("2"), decided(api.SliceAccepted, "Yes", "because", then())),
			grant.Answer{Verdict: grant.Accepted, Granted: list("2", "gpu"), Reason: "Yes", Message: "because"}, NodeClasses{},
			new(status(list("2", "gpu"), decided(api.SliceAccepted, "Yes", "because", then()))),
		},
		"Message": {
			"People read why.", status(list("2"), decided(api.SliceAccepted, "Yes", "otherwise", then())), yes, NodeClasses{},
			new(status(list("2"), decided(api.SliceAccepted, "Yes", "because", then()))),
		},
		"Turns": {
			"It is decided otherwise now.", status(list("0"), decided(api.SliceDenied, "No", "not now", then())), yes, NodeClasses{},
			new(status(list("2"), decided(api.SliceAccepted, "Yes", "because", later))),
		},
		"Provider": {
			"Its pods go to one provider.", status(nil), yesA, NodeClasses{},
			new(toA(status(list("2"), decided(api.SliceAccepted, "Yes", "because", later)))),
		},
		"NoProvider": {
			"They do no more.", toA(status(list("2"), decided(api.SliceAccepted, "Yes", "because", then()))), yes, NodeClasses{},
			new(status(list("2"), decided(api.SliceAccepted, "Yes", "because", then()))),
		},
		"Classes": {
			"Ingresses and load balancers are copied.", status(nil), yes,
			NodeClasses{all: Classes{classNames{"nginx": true}, classNames{"metallb": false}}},
			new(listing(status(list("2"), decided(api.SliceAccepted, "Yes", "because", later)))),
		},
		"OfProvider": {
			"A node of one provider has the classes of that.", status(nil), yesA,
			NodeClasses{all: Classes{classNames{"of-all": true}, nil}, of: map[cluster.ID]Classes{
				"a": {classNames{"nginx": true}, classNames{"metallb": false}}, "b": {classNames{"of-b": true}, nil},
			}},
			new(toA(listing(status(list("2"), decided(api.SliceAccepted, "Yes", "because", later))))),
		},
		"Unknown": {
			"A node whose provider is gone says of it what it said, and has no class of others.",
			toA(listing(status(list("2"), decided(api.SliceAccepted, "Yes", "because", then())))), unknown,
			NodeClasses{all: Classes{classNames{"of-all": true}, nil}},
			new(toA(listing(status(list("0"), decided(api.SliceAccepted, "Yes", "because", then()))))),
		},
		"Twice": {
			"What somebody else has decided besides goes.",
			status(list("2"), decided(api.SliceAccepted, "Yes", "because", then()), decided(api.SliceDenied, "Other", "", then())),
			yes, NodeClasses{}, new(status(list("2"), decided(api.SliceAccepted, "Yes", "because", then()))),
		},
		"OfLiqo": {
			"Nothing of what Liqo gave stays, but who the consumer is.", ofLiqo, yes, NodeClasses{},
			new(status(list("2"), decided(api.SliceAccepted, "Yes", "because", later))),
		},
		"DenyAll": {
			"Who is denied has nothing.", ofLiqo, no, NodeClasses{all: Classes{classNames{"nginx": true}, nil}},
			new(status(list("0"), decided(api.SliceDenied, "No", "not now", later))),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := fromConsumer(slice("", ""))
			s.Status = tc.status
			before := s.DeepCopy()
			got, wait := Answered(s, tc.answer, tc.classes, now())
			if wait != 0 {
				t.Errorf("%s\nit waits for %s", tc.reason, wait)
			}
			if diff := cmp.Diff(before, s); diff != "" {
				t.Errorf("%s\nthe object of the cache is changed: -was +is\n%s", tc.reason, diff)
			}
			if got == nil || tc.want == nil {
				if got != nil || tc.want != nil {
					t.Errorf("%s\nAnswered() = %+v, want %+v", tc.reason, got, tc.want)
				}
				return
			}
			want := before.DeepCopy()
			want.Status = *tc.want
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nAnswered(): -want +got\n%s", tc.reason, diff)
			}
			if again, wait := Answered(got, tc.answer, tc.classes, now().Add(time.Second)); again != nil || wait != 0 {
				t.Errorf("%s\na second later it changes, or waits for %s:\n%s", tc.reason, wait, cmp.Diff(got, again))
			}
		})
	}
}

// TestAnswerKeepsWhatIsLiqos holds that an answer is written without what our type does not have, such as the certificate of the consumer,
// and not after Liqo has written in between.
func TestAnswerKeepsWhatIsLiqos(t *testing.T) {
	s := fromConsumer(slice(api.SliceAccepted, ""))
	s.Status.Conditions[0].LastTransitionTime = then()
	c := sliceClient(t, interceptor.Funcs{}, s)
	var read api.ResourceSlice
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), &read); err != nil {
		t.Fatal(err)
	}
	answered, _ := Answered(&read, grant.Answer{Verdict: grant.Accepted, Reason: "Yes"}, NodeClasses{}, now())
	patch := client.MergeFromWithOptions(&read, client.MergeFromWithOptimisticLock{})
	got, err := patch.Data(answered)
	const want = `{"metadata":{"resourceVersion":"999"},"status":{"conditions":[` +
		`{"lastTransitionTime":"1970-01-01T00:16:40Z","status":"Accepted","type":"Authentication"},` +
		`{"lastTransitionTime":"1970-01-01T00:33:20Z","reason":"Yes","status":"Accepted","type":"Resources"}],"resources":null}}`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	later := read.DeepCopy()
	later.Status.Conditions[0].Message = "Liqo has written it again"
	if err := c.Status().Update(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if err := c.Status().Patch(t.Context(), answered, patch); !apierrors.IsConflict(err) {
		t.Errorf("who has read before Liqo wrote: %v, want a conflict", err)
	}
}

// TestNewlyDenied holds that people are told once.
func TestNewlyDenied(t *testing.T) {
	no := grant.Answer{Verdict: grant.Denied, Reason: "Because"}
	other := grant.Answer{Verdict: grant.Denied, Reason: "Other"}
	for name, tc := range map[string]struct {
		slice  *api.ResourceSlice
		answer grant.Answer
		want   bool
	}{
		"First":    {slice(api.SliceAccepted, ""), no, true},
		"Again":    {slice(api.SliceAccepted, api.SliceDenied), no, false},
		"Other":    {slice(api.SliceAccepted, api.SliceDenied), other, true},
		"Accepted": {slice(api.SliceAccepted, api.SliceDenied), grant.Answer{Verdict: grant.Accepted, Reason: "Other"}, false},
	} {
		if got := NewlyDenied(tc.slice, tc.answer); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOriginNode holds that a pod of a consumer of Liqo 1.x says by which node it has come.
func TestOriginNode(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{liqo.LabelOriginNodeV1: "x"}}}
	if got := liqo.OriginNode(pod); got != "x" {
		t.Errorf("OriginNode() = %q", got)
	}
}

// TestAnsweredViews tells the views that a consumer has to install, also while it is granted nothing.
func TestAnsweredViews(t *testing.T) {
	views := map[string]netip.Prefix{"n1": netip.MustParsePrefix("10.69.0.0/16")}
	const label, value = "view.brokering.liqo.io/n1", "10.69.0.0_16"
	for name, answer := range map[string]grant.Answer{
		"Denied":   {Verdict: grant.Denied, Reason: grant.AgentMissing, Views: views},
		"Accepted": {Verdict: grant.Accepted, Reason: grant.Granted, Provider: "p", Views: views},
	} {
		answered, _ := Answered(&api.ResourceSlice{}, answer, NodeClasses{}, time.Unix(9000, 0))
		if answered == nil || answered.Status.NodeLabels[label] != value {
			t.Errorf("%s: %+v", name, answered)
			continue
		}
		if provider := answered.Status.NodeLabels[liqo.LabelProvider]; provider != string(answer.Provider) {
			t.Errorf("%s: the node is that of %q", name, provider)
		}
		if again, _ := Answered(answered, answer, NodeClasses{}, time.Unix(9001, 0)); again != nil {
			t.Errorf("%s: it is written again: %+v", name, again.Status)
		}
	}
}

// TestAnsweredNodes tells of nodes whatever the answer is, and of none any more when there are none.
func TestAnsweredNodes(t *testing.T) {
	const label = "node.brokering.liqo.io/liqo-a"
	nodes := map[string]cluster.ID{"liqo-a": "a"}
	for name, answer := range map[string]grant.Answer{
		"Denied":   {Verdict: grant.Denied, Reason: grant.NodePerProvider, Nodes: nodes},
		"Accepted": {Verdict: grant.Accepted, Reason: grant.NothingOffered, Nodes: nodes},
	} {
		answered, _ := Answered(&api.ResourceSlice{}, answer, NodeClasses{}, time.Unix(9000, 0))
		if answered == nil || answered.Status.NodeLabels[label] != "a" {
			t.Errorf("%s: %+v", name, answered)
			continue
		}
		answer.Nodes = nil
		if again, _ := Answered(answered, answer, NodeClasses{}, time.Unix(9001, 0)); again == nil || len(again.Status.NodeLabels) > 0 {
			t.Errorf("%s: it is told still: %+v", name, again)
		}
	}
}

func TestRoleChanged(t *testing.T) {
	record := func(role api.Role, generation int64) client.Object {
		return &api.ForeignCluster{Status: api.ForeignClusterStatus{Role: role, ObservedGeneration: generation}}
	}
	for reason, tc := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"It provides no more.":     {record(api.RoleProvider, 1), record(api.RoleUnknown, 1), true},
		"Liqo has looked again.":   {record(api.RoleProvider, 1), record(api.RoleProvider, 2), false},
		"It is no word of a role.": {&api.Identity{}, &api.Identity{}, false},
	} {
		if got := RoleChanged(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %t", reason, got)
		}
	}
}
