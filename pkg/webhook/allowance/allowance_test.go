// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// The buyer has two namespaces here, and another cluster one.
const (
	web, jobs, others = "web-buyer", "jobs-buyer", "web-other"
)

func buyer() cluster.Identity { return cluster.Identity{ID: "id-buyer", Name: "buyer"} }
func other() cluster.Identity { return cluster.Identity{ID: "id-other", Name: "other"} }

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// spec returns a pod with one container that requests something.
func spec(pairs ...string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}}}
}

// wish returns a ShadowPod, whose pod has a phase.
func wish(namespace, name string, phase corev1.PodPhase, spec corev1.PodSpec) *v09.ShadowPod {
	shadow := liqotest.ShadowPod(namespace, name, nil)
	shadow.Spec.Pod, shadow.Status.Phase = spec, phase
	return shadow
}

// made returns the pod that Liqo makes of a ShadowPod.
func made(shadow *v09.ShadowPod) *corev1.Pod {
	pod := liqotest.Pod(shadow, "")
	pod.Spec, pod.Status.Phase = *v09.PodSpec(shadow), shadow.Status.Phase
	return pod
}

// desk is a Handler with its clock and what it reads.
type desk struct {
	*Handler

	clock *testingclock.FakePassiveClock
}

// later lets time pass.
func (d *desk) later(by time.Duration) { d.clock.SetTime(d.clock.Now().Add(by)) }

// offered returns a Handler where a buyer is offered 4 cores, 8 GiB and 10 pods, and another cluster as much; the buyer's offer may be
// changed first. All ShadowPods and pods are known.
func offered(t *testing.T, change func(*v09.ResourceOffer), shadows []*v09.ShadowPod, has []*corev1.Pod) *desk {
	t.Helper()
	d := &desk{clock: testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	amount := list("cpu", "4", "memory", "8Gi", "pods", "10")
	offer := liqotest.OfferTo(buyer(), amount)
	change(offer)
	foreign := liqotest.Offer(buyer(), list("cpu", "1000", "memory", "1Ti", "pods", "1000")) // What the buyer offers is not what it has.
	api := snapshottest.NewClient(t, interceptor.Funcs{},
		liqotest.ForeignCluster(buyer(), false, true), liqotest.ForeignCluster(other(), false, true),
		liqotest.TwinNamespace(web, buyer()), liqotest.TwinNamespace(jobs, buyer()), liqotest.TwinNamespace(others, other()),
		offer, foreign, liqotest.OfferTo(other(), amount))
	tally := NewTally(nil, v09.Line{}, d.clock)
	var known, running []any
	for _, s := range shadows {
		known = append(known, s)
	}
	for _, p := range has {
		running = append(running, p)
	}
	if err := (store{tally, wishes}).Replace(known, ""); err != nil {
		t.Fatal(err)
	}
	if err := (store{tally, pods}).Replace(running, ""); err != nil {
		t.Fatal(err)
	}
	d.Handler = New(Config{
		Scheme: liqotest.Scheme(t), Namespaces: api, Peers: snapshottest.Reader(api, "own"), Tally: tally, Grants: NewGrants(d.clock),
	})
	return d
}

// asked returns the request of an API server about an object.
func asked(t *testing.T, operation admissionv1.Operation, o, before client.Object) admission.Request {
	t.Helper()
	raw := func(o client.Object) runtime.RawExtension {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	kind := "ShadowPod"
	if _, pod := o.(*corev1.Pod); pod {
		kind = "Pod"
	}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Kind: kind}, Operation: operation, Namespace: o.GetNamespace(), Object: raw(o),
	}}
	if before != nil {
		req.OldObject = raw(before)
	}
	return req
}

// check compares an answer with a part of the refusal that is wanted; empty if there is to be none.
func check(t *testing.T, reason string, answer admission.Response, refusal string) {
	t.Helper()
	if answer.Allowed != (refusal == "") || !answer.Allowed && !strings.Contains(answer.Result.Message, refusal) {
		t.Errorf("%s\nallowed %t, %+v, want %q", reason, answer.Allowed, answer.Result, refusal)
	}
}

// TestWish asks for a pod beside others.
func TestWish(t *testing.T) {
	half := spec("cpu", "2", "memory", "4Gi")
	running := func(namespace, name string, spec corev1.PodSpec) *v09.ShadowPod {
		return wish(namespace, name, corev1.PodRunning, spec)
	}
	leaving := made(running(web, "leaving", spec("cpu", "3")))
	leaving.DeletionTimestamp = new(metav1.Now())
	limited := corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: list("cpu", "5")}}}}
	initial := spec("cpu", "1")
	initial.InitContainers = spec("cpu", "5").Containers
	heavy := spec("cpu", "1")
	heavy.Overhead = list("cpu", "4")
	whole := func(requests, limits corev1.ResourceList) corev1.PodSpec {
		pod := spec("cpu", "1")
		pod.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits}
		return pod
	}
	cases := map[string]struct {
		reason  string
		shadows []*v09.ShadowPod
		pods    []*corev1.Pod
		offer   func(*v09.ResourceOffer)
		in      string // web if empty.
		asks    corev1.PodSpec
		refusal string
	}{
		"All":    {reason: "What is bought may be used.", asks: spec("cpu", "4", "memory", "8Gi")},
		"Larger": {reason: "Not more.", asks: spec("cpu", "4001m"), refusal: "id-buyer would have 4001m of 4 cpu here"},
		"Both": {
			reason: "All that is too much is told at once.", asks: spec("cpu", "5", "memory", "9Gi"),
			refusal: "would have 5 of 4 cpu, 9Gi of 8Gi memory here",
		},
		"Beside": {reason: "Others fit beside it.", shadows: []*v09.ShadowPod{running(web, "a", half)}, asks: half},
		"Sum": {
			reason: "Namespaces do not each have it all.", shadows: []*v09.ShadowPod{running(web, "a", half), running(jobs, "b", half)},
			asks: spec("cpu", "1m"), refusal: "4001m of 4 cpu",
		},
		"OtherPeer": {
			reason: "What others have bought is theirs.", shadows: []*v09.ShadowPod{running(web, "a", half), running(jobs, "b", half)},
			in: others, asks: half,
		},
		"Zero": {reason: "A pod that requests nothing is a pod.", asks: spec()},
		"Pods": {
			reason: "They are counted.", shadows: many(10, func(n int) *v09.ShadowPod { return running(jobs, fmt.Sprint(n), spec()) }),
			asks: spec(), refusal: "11 of 10 pods",
		},
		"Ended": {
			reason:  "What has ended uses nothing.",
			shadows: []*v09.ShadowPod{wish(web, "a", corev1.PodSucceeded, half), wish(web, "b", corev1.PodFailed, half)}, asks: spec("cpu", "4"),
		},
		"Waiting": {
			reason: "What waits is reserved.", shadows: []*v09.ShadowPod{wish(web, "a", corev1.PodPending, half), wish(web, "b", "", half)},
			asks: spec("cpu", "1"), refusal: "5 of 4 cpu",
		},
		"Leaving": {
			reason: "A pod uses its node until it is gone, whatever its ShadowPod.", pods: []*corev1.Pod{leaving}, asks: half, refusal: "5 of 4 cpu",
		},
		"InItsPlace": {
			reason: "A small ShadowPod does not hide a large pod of its name.", pods: []*corev1.Pod{leaving},
			shadows: []*v09.ShadowPod{running(web, "leaving", spec("cpu", "1m"))}, asks: half, refusal: "5 of 4 cpu",
		},
		"Twice": {
			reason: "A pod and its ShadowPod count once.", shadows: []*v09.ShadowPod{running(web, "a", half)},
			pods: []*corev1.Pod{made(running(web, "a", half))}, asks: half,
		},
		"Again": {
			reason: "One that takes the place of another needs no room beside it.", pods: []*corev1.Pod{made(running(web, "new", half))},
			asks: spec("cpu", "4"),
		},
		"EndedPod": {
			reason: "Nor does a pod that has ended.", pods: []*corev1.Pod{made(wish(web, "a", corev1.PodFailed, half))}, asks: spec("cpu", "4"),
		},
		"Limits":   {reason: "The API server has pods request what is their limit.", asks: limited, refusal: "5 of 4 cpu"},
		"Init":     {reason: "What a pod needs to start counts, as in the scheduler.", asks: initial, refusal: "5 of 4 cpu"},
		"Overhead": {reason: "So does what its runtime needs.", asks: heavy, refusal: "5 of 4 cpu"},
		"Whole":    {reason: "And what it requests as a whole.", asks: whole(list("cpu", "5"), nil), refusal: "5 of 4 cpu"},
		"WholeSmaller": {
			reason: "Which is not less than what its containers request, as an older cluster counts.", asks: whole(list("cpu", "1m"), nil),
			shadows: []*v09.ShadowPod{running(web, "a", spec("cpu", "3500m"))}, refusal: "4500m of 4 cpu",
		},
		"WholeLimits": {
			reason: "A limit of the pod is what it requests of what no container does.", asks: whole(nil, list("cpu", "9", "memory", "9Gi")),
			refusal: "would have 9Gi of 8Gi memory here",
		},
		"Foreign":   {reason: "What is not offered is not there.", asks: spec("example.com/gpu", "1"), refusal: "1 of 0 example.com/gpu"},
		"NoForeign": {reason: "To want none of it is nothing.", asks: spec("example.com/gpu", "0", "cpu", "1")},
		"Negative": {
			reason:  "Nobody gives back what it does not have.",
			shadows: []*v09.ShadowPod{running(web, "a", spec("cpu", "-1000")), running(web, "b", half)}, asks: spec("cpu", "3"),
			refusal: "5 of 4 cpu",
		},
		"NegativeBeside": {
			reason: "Nor in one of its containers.",
			shadows: []*v09.ShadowPod{
				running(web, "a", corev1.PodSpec{Containers: append(spec("cpu", "-4").Containers, spec("cpu", "4").Containers...)}),
			},
			asks: spec("cpu", "1"), refusal: "5 of 4 cpu",
		},
		"Absurd": {reason: "No number is too large to be too large.", asks: spec("cpu", "9E", "memory", "1e40"), refusal: "of 4 cpu"},
		"AbsurdBefore": {
			reason: "Nor together.", shadows: many(20, func(n int) *v09.ShadowPod { return running(jobs, fmt.Sprint(n), spec("memory", "9E")) }),
			asks: spec("memory", "1"), refusal: "of 8Gi memory",
		},
		"OtherResource": {
			reason:  "A shortage of one thing is none of another: the offer has shrunk.",
			shadows: []*v09.ShadowPod{running(web, "a", spec("memory", "9Gi"))}, asks: spec("cpu", "1"),
		},
		"Nothing": {reason: "Whoever has bought nothing gets nothing.", offer: func(o *v09.ResourceOffer) { o.Spec.ResourceQuota.Hard = nil },
			asks: spec(), refusal: "offers nothing to id-buyer"},
		"Withdrawn": {reason: "Nor does who has nothing any more.", offer: liqotest.Withdraw, asks: spec(), refusal: "offers nothing"},
		"NotYet":    {reason: "Nobody knows whose namespace it is.", in: "new-buyer", asks: spec(), refusal: "whose namespace new-buyer is"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.offer == nil {
				tc.offer = func(*v09.ResourceOffer) {}
			}
			if tc.in == "" {
				tc.in = web
			}
			d := offered(t, tc.offer, tc.shadows, tc.pods)
			check(t, tc.reason, d.Handle(t.Context(), asked(t, admissionv1.Create, wish(tc.in, "new", "", tc.asks), nil)), tc.refusal)
		})
	}
}

func unchanged(*v09.ResourceOffer) {}

// many returns so many ShadowPods.
func many(count int, shadow func(int) *v09.ShadowPod) (all []*v09.ShadowPod) {
	for n := range count {
		all = append(all, shadow(n))
	}
	return all
}

// TestChange changes a ShadowPod that is there.
func TestChange(t *testing.T) {
	before := wish(web, "a", corev1.PodRunning, spec("cpu", "1"))
	labelled := before.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	for name, tc := range map[string]struct {
		reason  string
		after   *v09.ShadowPod
		refusal string
	}{
		"Same":    {"Virtual kubelets write labels.", labelled, ""},
		"Smaller": {"Less is no harm.", wish(web, "a", corev1.PodRunning, spec("cpu", "500m")), ""},
		"Larger": {
			"Liqo makes the next pod of it.", wish(web, "a", corev1.PodRunning, spec("cpu", "1001m")),
			"it requests 1001m cpu now, and 1 when it was made",
		},
		"Another": {
			"Also of what it did not have.", wish(web, "a", corev1.PodRunning, spec("cpu", "1", "memory", "1")), "it requests 1 memory now, and 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := offered(t, unchanged, []*v09.ShadowPod{before, wish(jobs, "b", corev1.PodRunning, spec("cpu", "3"))}, nil)
			check(t, tc.reason, d.Handle(t.Context(), asked(t, admissionv1.Update, tc.after, before)), tc.refusal)
		})
	}
}

// TestPod has Liqo make a pod of a ShadowPod.
func TestPod(t *testing.T) {
	full := wish(jobs, "b", corev1.PodRunning, spec("cpu", "4"))
	mine := made(wish(web, "a", "", spec("cpu", "1")))
	people := mine.DeepCopy()
	people.Labels = nil
	for name, tc := range map[string]struct {
		reason  string
		shadows []*v09.ShadowPod
		pod     *corev1.Pod
		refusal string
	}{
		"First": {"Its ShadowPod was admitted.", []*v09.ShadowPod{full, wish(web, "a", "", spec("cpu", "1"))}, mine, ""},
		"Moved": {
			"It counted all the time, also if less is offered now.", []*v09.ShadowPod{full, wish(web, "a", corev1.PodRunning, spec("cpu", "1"))},
			mine, "",
		},
		"Back": {
			"It had ended, others came, and somebody has deleted it.", []*v09.ShadowPod{full, wish(web, "a", corev1.PodFailed, spec("cpu", "1"))},
			mine, "5 of 4 cpu",
		},
		"BackInTime": {"Or none came.", []*v09.ShadowPod{wish(web, "a", corev1.PodFailed, spec("cpu", "1"))}, mine, ""},
		"Unseen":     {"Its ShadowPod is not seen yet.", []*v09.ShadowPod{full}, mine, ""},
		"People":     {"It is not the peer's.", []*v09.ShadowPod{full, wish(web, "a", corev1.PodFailed, spec("cpu", "1"))}, people, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := offered(t, unchanged, tc.shadows, nil)
			check(t, tc.reason, d.Handle(t.Context(), asked(t, admissionv1.Create, tc.pod, nil)), tc.refusal)
		})
	}
}

// TestAtOnce asks for many pods at the same time, of which none is seen yet.
func TestAtOnce(t *testing.T) {
	d := offered(t, unchanged, nil, nil)
	var admitted atomic.Int32
	var all sync.WaitGroup
	for n := range 32 {
		all.Go(func() {
			name := fmt.Sprint(n)
			if n%4 == 0 {
				name = "" // Some have no name yet.
			}
			request := asked(t, admissionv1.Create, wish([]string{web, jobs}[n%2], name, "", spec("cpu", "1")), nil)
			request.UID = types.UID(fmt.Sprintf("uid-%d", n))
			if d.Handle(t.Context(), request).Allowed {
				admitted.Add(1)
			}
		})
	}
	all.Wait()
	if got := admitted.Load(); got != 4 {
		t.Errorf("%d pods of a core each are admitted, of 4 cores", got)
	}
}

// TestClaim follows a pod that was admitted.
func TestClaim(t *testing.T) {
	whole := wish(web, "a", "", spec("cpu", "4"))
	next := func(t *testing.T, d *desk, reason, refusal string) {
		t.Helper()
		request := asked(t, admissionv1.Create, wish(web, "b", "", spec("cpu", "4")), nil)
		request.DryRun = new(true)
		check(t, reason, d.Handle(t.Context(), request), refusal)
	}
	claimed := func(t *testing.T) *desk {
		t.Helper()
		d := offered(t, unchanged, nil, nil)
		check(t, "there is room", d.Handle(t.Context(), asked(t, admissionv1.Create, whole, nil)), "")
		next(t, d, "it counts at once", "8 of 4 cpu")
		return d
	}
	t.Run("Refused", func(t *testing.T) {
		d := claimed(t)
		check(t, "its virtual kubelet tries again", d.Handle(t.Context(), asked(t, admissionv1.Create, whole, nil)), "")
		d.later(31 * time.Second)
		next(t, d, "it never came: another webhook refused it", "")
	})
	t.Run("Seen", func(t *testing.T) {
		d := claimed(t)
		see := store{d.Tally, wishes}
		if err := see.Add(whole); err != nil {
			t.Fatal(err)
		}
		d.later(time.Hour)
		next(t, d, "it is there", "8 of 4 cpu")
		if err := see.Update(wish(web, "a", corev1.PodSucceeded, spec("cpu", "4"))); err != nil {
			t.Fatal(err)
		}
		next(t, d, "it has ended", "")
	})
	t.Run("Short", func(t *testing.T) {
		d := claimed(t)
		see := store{d.Tally, wishes}
		if err := see.Add(whole); err != nil {
			t.Fatal(err)
		}
		if err := see.Delete(whole); err != nil {
			t.Fatal(err)
		}
		next(t, d, "it came and went", "")
		if len(d.Tally.places) > 0 {
			t.Errorf("the tally keeps %v", d.Tally.places)
		}
	})
	t.Run("Listed", func(t *testing.T) {
		d := claimed(t)
		see := store{d.Tally, wishes}
		if err := see.Replace([]any{whole}, ""); err != nil {
			t.Fatal(err)
		}
		next(t, d, "it is there, seen when the watch began again", "8 of 4 cpu")
		if err := see.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
		next(t, d, "it has gone while nobody watched", "")
	})
	t.Run("DryRun", func(t *testing.T) {
		d := offered(t, unchanged, nil, nil)
		next(t, d, "there is room", "")
		next(t, d, "a question takes none", "")
	})
}

// TestShrunk has a buyer be offered less: what runs stays, and what it asks for in the next minute, before it knows, may come as before.
func TestShrunk(t *testing.T) {
	less := func(o *v09.ResourceOffer) {
		o.Spec.ResourceQuota.Hard = list("cpu", "1", "memory", "8Gi", "pods", "10")
	}
	running := []*v09.ShadowPod{wish(web, "a", corev1.PodRunning, spec("cpu", "2"))}
	ask := func(t *testing.T, d *desk, cores string) admission.Response {
		t.Helper()
		request := asked(t, admissionv1.Create, wish(web, "b", "", spec("cpu", cores)), nil)
		request.DryRun = new(true)
		return d.Handle(t.Context(), request)
	}
	is := liqotest.OfferTo(buyer(), nil)
	less(is)
	was := liqotest.OfferTo(buyer(), list("cpu", "4", "memory", "8Gi", "pods", "10"))

	d := offered(t, less, running, nil)
	check(t, "more runs than is offered", ask(t, d, "1m"), "2001m of 1 cpu")
	check(t, "but of what is not short there is some", ask(t, d, "0"), "")
	d.Grants.changed(v09.OfferOf(was), v09.OfferOf(is))
	check(t, "a moment ago there was room", ask(t, d, "2"), "")
	check(t, "no more than then", ask(t, d, "2001m"), "4001m of 4 cpu")
	d.later(59 * time.Second)
	middle := is.DeepCopy()
	middle.Spec.ResourceQuota.Hard["cpu"] = resource.MustParse("3")
	d.Grants.changed(v09.OfferOf(middle), v09.OfferOf(is))
	check(t, "what was offered in between does not replace it", ask(t, d, "2"), "")
	d.later(61 * time.Second)
	check(t, "by now it knows", ask(t, d, "1m"), "2001m of 1 cpu")

	d.Grants.changed(v09.OfferOf(is), v09.OfferOf(was))
	check(t, "more is no less", ask(t, d, "1m"), "2001m of 1 cpu")
	d.Grants.changed(v09.OfferOf(was), v09.OfferOf(is))
	d.Grants.forgetOffer(v09.OfferOf(is))
	check(t, "the offer is another one", ask(t, d, "1m"), "2001m of 1 cpu")
}

// TestCold asks before all pods are known.
func TestCold(t *testing.T) {
	d := offered(t, unchanged, nil, nil)
	d.Tally = NewTally(nil, v09.Line{}, clock.RealClock{})
	for _, o := range []client.Object{wish(web, "a", "", spec()), made(wish(web, "a", "", spec()))} {
		check(t, "nobody knows what runs", d.Handle(t.Context(), asked(t, admissionv1.Create, o, nil)), "does not know all pods")
	}
	if err := (store{d.Tally, wishes}).Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	check(t, "half of it is not enough", d.Handle(t.Context(), asked(t, admissionv1.Create, wish(web, "a", "", spec()), nil)),
		"does not know all pods")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d.Tally.WaitForSync(ctx) {
		t.Error("WaitForSync() has not waited")
	}
	if err := (store{d.Tally, pods}).Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	check(t, "now it is known", d.Handle(t.Context(), asked(t, admissionv1.Create, wish(web, "a", "", spec()), nil)), "")
}

// TestEnded bounds what is kept of pods that have ended.
func TestEnded(t *testing.T) {
	ended := many(maxEnded, func(n int) *v09.ShadowPod { return wish(jobs, fmt.Sprint(n), corev1.PodSucceeded, spec("cpu", "1")) })
	d := offered(t, unchanged, ended, nil)
	request := asked(t, admissionv1.Create, wish(web, "new", "", spec()), nil)
	check(t, "there are many", d.Handle(t.Context(), request), "has 12500 pods here that have ended")
	if err := (store{d.Tally, wishes}).Delete(ended[0]); err != nil {
		t.Fatal(err)
	}
	check(t, "one is gone", d.Handle(t.Context(), request), "")
}

// TestJunk sends what nobody can read, or nobody is to be asked about.
func TestJunk(t *testing.T) {
	d := offered(t, unchanged, nil, nil)
	shadow := asked(t, admissionv1.Create, wish(web, "a", "", spec()), nil)
	huge := shadow
	huge.Object.Raw = []byte(strings.Replace(string(shadow.Object.Raw), `"resources":{}`, `"resources":{"requests":{"cpu":"1e999999999"}}`, 1))
	array := shadow
	array.Object.Raw = []byte(`[1]`)
	pod := asked(t, admissionv1.Create, made(wish(web, "a", "", spec())), nil)
	pod.Object.Raw = []byte(`[1]`)
	gone := shadow
	gone.Operation = admissionv1.Delete
	if string(huge.Object.Raw) == string(shadow.Object.Raw) {
		t.Fatalf("the request is not huge: %s", huge.Object.Raw)
	}
	for name, request := range map[string]admission.Request{"Huge": huge, "Array": array, "Pod": pod, "Delete": gone} {
		if answer := d.Handle(t.Context(), request); answer.Allowed || answer.Result.Code != 400 {
			t.Errorf("%s: %+v, want a refusal with code 400", name, answer.Result)
		}
	}
}
