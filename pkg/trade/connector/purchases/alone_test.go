// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// restore puts a record of a seller back, as from a backup.
func (s *shop) restore(t *testing.T, record contract.Record) {
	t.Helper()
	s.Forget(record.Key)
	if _, err := s.Update(t.Context(), record.Key, func(_ *contract.Record, books ledger.Ledger) (contract.Result, error) {
		return contract.Result{Record: record, Before: books, After: books, Outcome: contract.Done}, nil
	}); err != nil {
		t.Fatal(err)
	}
}

func messageOf(object *connectorv1alpha1.Purchase) string {
	if c := meta.FindStatusCondition(object.Status.Conditions, connectorv1alpha1.ConditionReady); c != nil {
		return c.Message
	}
	return ""
}

// end has people end a purchase.
func (w *world) end(name string) { //nolint:unparam // The name says what ends.
	w.t.Helper()
	w.change(name, func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.End = &connectorv1alpha1.ContractEnd{Reason: "enough"}
	})
}

// silence has the seller answer nobody until it is called again.
func (s *shop) silence() (speak func()) {
	handler := s.server.Handler
	s.server.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	return func() { s.server.Handler = handler }
}

var parted = []string{"peer a", "drain a", "unpeer a"}

// TestForgotten has a seller forget a contract that is active: after some minutes the buyer moves its workloads away and parts, whatever
// the contract has left. A seller that knows it again before that changes nothing.
func TestForgotten(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	record, _ := s.Get(t.Context(), w.key("p"))
	s.Forget(w.key("p"))
	for range 5 {
		w.once("p")
	}
	if p := w.get("p"); reasonOf(p) != connectorv1alpha1.ReasonContractUnknown || len(w.clusters.log) != 1 {
		t.Errorf("for a minute: %s, %q", reasonOf(p), w.clusters.log)
	}
	s.restore(t, *record)
	if w.once("p"); reasonOf(w.get("p")) != connectorv1alpha1.ReasonActive || len(w.clusters.log) != 1 {
		t.Errorf("known again: %s, %q", reasonOf(w.get("p")), w.clusters.log)
	}
	s.Forget(w.key("p"))
	p := w.until("p", connectorv1alpha1.ReasonEndedEarly, s)
	if !slices.Equal(w.clusters.log, parted) || !strings.Contains(messageOf(p), "does not know") {
		t.Errorf("forgotten: %q, %s", w.clusters.log, messageOf(p))
	}
}

// TestKnownAgain has a seller know a contract again while workloads leave: they may come back.
func TestKnownAgain(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	record, _ := s.Get(t.Context(), w.key("p"))
	s.Forget(w.key("p"))
	w.clusters.pods["a"] = 1000
	for range 40 {
		if w.once("p"); slices.Contains(w.clusters.log, "drain a") {
			break
		}
	}
	s.restore(t, *record)
	p := w.until("p", connectorv1alpha1.ReasonActive, s)
	if want := []string{"peer a", "drain a", "peer a"}; !slices.Equal(w.clusters.log, want) || messageOf(p) != "The contract is in use." {
		t.Errorf("known again: %q, %q", w.clusters.log, messageOf(p))
	}
}

// requests counts the requests to a seller from now on.
func (s *shop) requests() *atomic.Int64 {
	handler, count := s.server.Handler, &atomic.Int64{}
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		handler.ServeHTTP(w, r)
	})
	return count
}

// TestLeft has a seller not know a contract until its buyer has left: it is asked seldom. When it knows it again, the contract goes on, or
// ends if people have ended it or deleted the Purchase meanwhile, and until a drain after its end.
func TestLeft(t *testing.T) {
	older := func(t *testing.T, s *shop, w *world) contract.Record {
		t.Helper()
		record, _ := s.Get(t.Context(), w.key("p"))
		s.decide(t, w.key("p"), contract.Suspend)
		s.decide(t, w.key("p"), contract.Resume)
		w.once("p")
		return *record
	}
	newest := func(t *testing.T, s *shop, w *world) contract.Record {
		t.Helper()
		record, _ := s.Get(t.Context(), w.key("p"))
		return *record
	}
	remove := func(t *testing.T, w *world) {
		t.Helper()
		if err := w.client.Delete(t.Context(), w.get("p")); err != nil {
			t.Fatal(err)
		}
	}
	ended := func(t *testing.T, w *world) { t.Helper(); w.end("p") }
	nothing := func(*testing.T, *world) {}
	for _, c := range []struct {
		name         string
		copied       func(*testing.T, *shop, *world) contract.Record
		before, then func(*testing.T, *world)
		reason       string // Empty if it is gone.
		message      string
		state        contract.State
		done         []string
	}{
		{"known again", newest, nothing, nothing, connectorv1alpha1.ReasonActive, "goes on", contract.Active, []string{"peer a"}},
		{
			"an older version", older, nothing, nothing, connectorv1alpha1.ReasonActive, "kubectl delete purchase p ends it", contract.Active,
			[]string{"peer a"},
		},
		{"ended before", newest, ended, nothing, connectorv1alpha1.ReasonEnded, "", contract.Ended, nil},
		{"ended then", newest, nothing, ended, connectorv1alpha1.ReasonEnded, "", contract.Ended, nil},
		{"deleted then", newest, nothing, remove, "", "", contract.Ended, nil},
		{"deleted then, an older version", older, nothing, remove, "", "", contract.Ended, nil},
		{"deleted before", newest, remove, nothing, "", "", contract.Active, nil}, // The seller was asked once more.
		{
			"over", newest, func(_ *testing.T, w *world) { w.wait(2 * time.Hour) }, nothing, connectorv1alpha1.ReasonEndedEarly, "does not know",
			contract.Active, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			w.create("p", s, nil)
			w.until("p", connectorv1alpha1.ReasonActive, s)
			record := c.copied(t, s, w)
			s.Forget(w.key("p"))
			w.until("p", connectorv1alpha1.ReasonEndedEarly, s)
			count := s.requests()
			for range 3 {
				if again := w.once("p").RequeueAfter; again < 5*time.Minute {
					t.Errorf("it asks again after %s", again)
				}
			}
			if asked := count.Load(); asked != 3 || reasonOf(w.get("p")) != connectorv1alpha1.ReasonEndedEarly {
				t.Errorf("in three looks it asks %d times; %s", asked, reasonOf(w.get("p")))
			}
			c.before(t, w)
			w.once("p")
			s.restore(t, record)
			c.then(t, w)
			for range 20 {
				w.once("p")
				s.serve(t, w.key("p"))
			}
			p := w.get("p")
			switch {
			case (p == nil) != (c.reason == ""):
				t.Errorf("it is gone: %t", p == nil)
			case p != nil && (reasonOf(p) != c.reason || !strings.Contains(messageOf(p), c.message)):
				t.Errorf("it is %s (%s)", reasonOf(p), messageOf(p))
			}
			if now, _ := s.Get(t.Context(), w.key("p")); now.State != c.state || !slices.Equal(w.clusters.log, slices.Concat(parted, c.done)) {
				t.Errorf("the seller has %s; done: %q", now.State, w.clusters.log)
			}
		})
	}
}

// TestClockLeaps has the buyer's clock leap beyond the end while the seller answers, and while it does not, also to a new key of the buyer:
// what the seller has said and what has passed since count as well.
func TestClockLeaps(t *testing.T) {
	for _, c := range []struct{ silent, rotated bool }{{false, false}, {true, false}, {true, true}} {
		s := open(t, remote())
		w := newWorld(t, s)
		w.create("p", s, nil)
		w.until("p", connectorv1alpha1.ReasonActive, s)
		if c.silent {
			s.silence()
		}
		if c.rotated {
			next := newParty(t)
			keys, err := party.Rotate(w.buyer.keys, w.buyer.key, next.key)
			if err != nil {
				t.Fatal(err)
			}
			w.buyer = somebody{next.key, keys}
		}
		right := w.now
		w.now = func() time.Time { return right().Add(3 * time.Hour) }
		for range 30 {
			w.once("p")
		}
		w.now = right
		w.once("p")
		if reason := reasonOf(w.get("p")); reason != connectorv1alpha1.ReasonActive || len(w.clusters.log) != 1 {
			t.Errorf("%+v: %s, %q", c, reason, w.clusters.log)
		}
	}
}

// TestBeginsWithWrongClock has a connector begin with a clock that is beyond the end, while the seller is silent. No answer has said
// another time, so it parts as if that were true, but it asks on until the seller answers, and then all goes on.
func TestBeginsWithWrongClock(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	speak := s.silence()
	w.restart()
	right := w.now
	w.now = func() time.Time { return right().Add(3 * time.Hour) }
	for range 60 {
		w.once("p")
	}
	if reason := reasonOf(w.get("p")); reason != connectorv1alpha1.ReasonEnding || !slices.Equal(w.clusters.log, parted) {
		t.Errorf("with a wrong clock: %s, %q", reason, w.clusters.log)
	}
	w.now = right
	speak()
	w.until("p", connectorv1alpha1.ReasonActive, s)
	if want := append(slices.Clone(parted), "peer a"); !slices.Equal(w.clusters.log, want) {
		t.Errorf("done: %q, want %q", w.clusters.log, want)
	}
}

// TestVanished has a seller vanish, and a connector begin again half an hour later: nothing has told it the time since. It parts in time by
// its own clock, and asks on for as long as nothing was counted, and not for longer.
func TestVanished(t *testing.T) {
	const away = 30 * time.Minute
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	last := w.until("p", connectorv1alpha1.ReasonActive, s).Status.EndTime.Add(time.Minute) // After a drain.
	s.silence()
	w.once("p")
	w.restart()
	w.wait(away)
	next := func() string {
		w.wait(2*time.Minute - pause)
		w.once("p")
		return reasonOf(w.get("p"))
	}
	reason := ""
	for w.now().Before(last) {
		reason = next()
	}
	if reason != connectorv1alpha1.ReasonEnding || !slices.Equal(w.clusters.log, parted) {
		t.Errorf("a drain after the end: %s, %q", reason, w.clusters.log)
	}
	for reason != connectorv1alpha1.ReasonEnded && w.now().Before(last.Add(2*away)) {
		reason = next()
	}
	if longer := w.now().Sub(last); reason != connectorv1alpha1.ReasonEnded || longer < away-time.Minute || longer > away+4*time.Minute {
		t.Errorf("%s longer it is %s, want to ask %s longer", longer, reason, away)
	}
}

// TestSilentAtTheEnd has a seller not answer from before the end on: workloads leave as agreed, when it has been silent for a drain. It
// asks until a drain after the end.
func TestSilentAtTheEnd(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	ends := w.until("p", connectorv1alpha1.ReasonActive, s).Status.EndTime.Time
	s.silence()
	w.wait(ends.Add(-2 * time.Minute).Sub(w.now()))
	for w.now().Before(ends.Add(-time.Minute - pause)) {
		if w.once("p"); len(w.clusters.log) != 1 {
			t.Fatalf("%s before the end: %q", ends.Sub(w.now()), w.clusters.log)
		}
	}
	for w.now().Before(ends) {
		w.once("p")
	}
	if !slices.Equal(w.clusters.log, parted) || reasonOf(w.get("p")) != connectorv1alpha1.ReasonEnding {
		t.Errorf("at the end: %q, %s", w.clusters.log, reasonOf(w.get("p")))
	}
	w.until("p", connectorv1alpha1.ReasonEnded, nil)
	if w.now().Before(ends.Add(time.Minute)) {
		t.Errorf("it asks no more %s after the end", w.now().Sub(ends))
	}
}

// TestEndedWhileSilent has people end a contract whose seller does not answer: workloads leave after a drain, and the seller is told when
// it answers.
func TestEndedWhileSilent(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	speak := s.silence()
	w.end("p")
	for range 4 {
		w.once("p")
	}
	if len(w.clusters.log) != 1 {
		t.Errorf("after some seconds: %q", w.clusters.log)
	}
	for range 20 {
		w.once("p")
	}
	if !slices.Equal(w.clusters.log, parted) || reasonOf(w.get("p")) != connectorv1alpha1.ReasonEnding {
		t.Errorf("after minutes: %q, %s", w.clusters.log, reasonOf(w.get("p")))
	}
	speak()
	w.until("p", connectorv1alpha1.ReasonEnded, s)
	if record, _ := s.Get(t.Context(), w.key("p")); record.State != contract.Ended || !slices.Equal(w.clusters.log, parted) {
		t.Errorf("the seller has %s; done: %q", record.State, w.clusters.log)
	}
}

// TestEndedBehindAnotherKey has people end a contract while somebody else is found at the seller's address: that is no answer, and the
// seller is told when it is there again.
func TestEndedBehindAnotherKey(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	key := s.key
	s.key = newParty(t).key
	speak := s.silence() // So that nobody goes on with a connection.
	w.once("p")
	speak()
	w.end("p")
	for range 24 {
		w.once("p")
	}
	if !slices.Equal(w.clusters.log, parted) || reasonOf(w.get("p")) != connectorv1alpha1.ReasonEnding {
		t.Errorf("after minutes: %q, %s", w.clusters.log, reasonOf(w.get("p")))
	}
	s.key = key
	w.until("p", connectorv1alpha1.ReasonEnded, s)
	if record, _ := s.Get(t.Context(), w.key("p")); record.State != contract.Ended {
		t.Errorf("the seller has %s", record.State)
	}
}

// TestDeafSeller has a seller answer, and end nothing.
func TestDeafSeller(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	handler := s.server.Handler
	s.server.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/termination") {
			r = r.Clone(r.Context())
			r.Method, r.URL.Path, r.Body = http.MethodGet, strings.TrimSuffix(r.URL.Path, "/termination"), http.NoBody
		}
		handler.ServeHTTP(out, r)
	})
	w.end("p")
	p := w.until("p", connectorv1alpha1.ReasonEnded, s)
	if !slices.Equal(w.clusters.log, parted) || !strings.Contains(messageOf(p), "not") {
		t.Errorf("done: %q, %s", w.clusters.log, messageOf(p))
	}
}

// TestLostKey makes the buyer another party: its contract runs to its end, and its workloads leave before.
func TestLostKey(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	ends := w.until("p", connectorv1alpha1.ReasonActive, s).Status.EndTime.Time
	w.buyer = newParty(t)
	w.restart()
	for range 60 {
		w.once("p")
	}
	if p := w.get("p"); len(w.clusters.log) != 1 || reasonOf(p) != connectorv1alpha1.ReasonActive ||
		!strings.Contains(messageOf(p), "another party") {
		t.Errorf("it has %s (%s), done: %q", reasonOf(p), messageOf(p), w.clusters.log)
	}
	w.wait(ends.Add(-2 * time.Minute).Sub(w.now()))
	w.until("p", connectorv1alpha1.ReasonEnded, nil)
	if !slices.Equal(w.clusters.log, parted) {
		t.Errorf("at the end: %q", w.clusters.log)
	}
}

// TestRestored restores a seller from a copy of when the contract was reserved, and of when it was active by older terms: the buyer says
// so, and goes on with the contract, or follows it to its end.
func TestRestored(t *testing.T) {
	for _, c := range []struct {
		name   string
		copied contract.State
		resize bool
		then   func(*testing.T, *shop, *world)
		reason string
		done   []string
	}{
		{"reserved", contract.Reserved, false, func(*testing.T, *shop, *world) {}, connectorv1alpha1.ReasonActive, parted[:1]},
		{
			"reserved by older terms", contract.Reserved, true, func(*testing.T, *shop, *world) {},
			connectorv1alpha1.ReasonSellerRestored, parted[:1],
		},
		{"active", contract.Active, false, func(*testing.T, *shop, *world) {}, connectorv1alpha1.ReasonActive, parted[:1]},
		{"active by older terms", contract.Active, true, func(*testing.T, *shop, *world) {}, connectorv1alpha1.ReasonSellerRestored, parted[:1]},
		{"and another size", contract.Active, true, func(_ *testing.T, _ *shop, w *world) {
			w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("5") })
		}, connectorv1alpha1.ReasonActive, parted[:1]},
		{
			"ended by the buyer", contract.Active, true, func(_ *testing.T, _ *shop, w *world) { w.end("p") }, connectorv1alpha1.ReasonEnded, parted,
		},
		{
			"reserved, ended by the buyer", contract.Reserved, true, func(_ *testing.T, _ *shop, w *world) { w.end("p") },
			connectorv1alpha1.ReasonEnded, parted,
		},
		{"ended by the seller", contract.Active, true, func(t *testing.T, s *shop, w *world) {
			t.Helper()
			s.decide(t, w.key("p"), contract.Notice)
		}, connectorv1alpha1.ReasonEndedEarly, parted},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			var backup *contract.Record
			s.AfterWrite = func() error {
				if record, _ := s.Get(context.Background(), w.key("p")); backup == nil && record != nil && record.State == c.copied {
					backup = record
				}
				return nil
			}
			w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Duration.Duration = 30 * 24 * time.Hour })
			w.until("p", connectorv1alpha1.ReasonActive, s)
			s.AfterWrite = nil
			sizes := []string{"2", "2"}
			if c.resize {
				sizes = []string{"3", "4"}
			}
			for _, cores := range sizes {
				w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse(cores) })
				w.once("p")
			}
			if !c.resize && c.copied == contract.Active { // The version must be another one.
				s.decide(t, w.key("p"), contract.Suspend)
				s.decide(t, w.key("p"), contract.Resume)
				w.once("p")
			}
			s.restore(t, *backup)
			if w.once("p"); reasonOf(w.get("p")) != connectorv1alpha1.ReasonSellerRestored || len(w.clusters.log) != 1 {
				t.Errorf("restored: %s, %q", reasonOf(w.get("p")), w.clusters.log)
			}
			c.then(t, s, w)
			for range 30 {
				w.once("p")
				s.serve(t, w.key("p"))
			}
			if p := w.get("p"); reasonOf(p) != c.reason || !slices.Equal(w.clusters.log, c.done) {
				t.Errorf("%s (%s), done %q", reasonOf(p), messageOf(p), w.clusters.log)
			}
		})
	}
}

// TestRestoredBeside restores a seller that then comes to the version which its buyer has seen, and to another state: the buyer follows it.
func TestRestoredBeside(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	record, _ := s.Get(t.Context(), w.key("p"))
	record.State = contract.Suspended
	s.restore(t, *record)
	if w.once("p"); reasonOf(w.get("p")) != connectorv1alpha1.ReasonSellerRestored || len(w.clusters.log) != 1 {
		t.Errorf("at once: %s, %q", reasonOf(w.get("p")), w.clusters.log)
	}
	for range 10 {
		w.once("p")
	}
	if p := w.get("p"); p.Status.State != string(contract.Suspended) || !slices.Equal(w.clusters.log, parted[:2]) {
		t.Errorf("after a minute: %s (%s), %q", p.Status.State, messageOf(p), w.clusters.log)
	}
}

// lie has the seller change what it answers.
func (s *shop) lie(change func(map[string]any)) {
	handler := s.server.Handler
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded := httptest.NewRecorder()
		handler.ServeHTTP(recorded, r)
		var answer map[string]any
		text := recorded.Body.Bytes()
		if recorded.Code == http.StatusOK && json.Unmarshal(text, &answer) == nil {
			change(answer)
			var plain bytes.Buffer
			encoder := json.NewEncoder(&plain)
			encoder.SetEscapeHTML(false)
			_ = encoder.Encode(answer) //nolint:errchkjson // Who does not get it asks again.
			text = plain.Bytes()
		}
		maps.Copy(w.Header(), recorded.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(text)
	})
}

// TestSignedThenEnded has a seller sign, and then show that the contract has ended when it was to, though it has hardly begun.
func TestSignedThenEnded(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	s.lie(func(v map[string]any) {
		if v["state"] == string(contract.Signed) {
			v["state"] = string(contract.Ended)
		}
	})
	w.create("p", s, nil)
	for range 40 {
		w.once("p")
	}
	if p := w.get("p"); reasonOf(p) != connectorv1alpha1.ReasonEndedEarly || len(w.clusters.log) > 0 {
		t.Errorf("%s (%s): %q", reasonOf(p), messageOf(p), w.clusters.log)
	}
}

// TestManyWords has a seller say more than a Purchase has room for, in each place where it can say something, and with a new version each
// time: the buyer still leaves what it has ended.
func TestManyWords(t *testing.T) {
	long := strings.Repeat("<", 60_000)
	for name, change := range map[string]func(map[string]any){
		"reason":    func(v map[string]any) { v["reason"] = long },
		"refusal":   func(v map[string]any) { v["refused"] = map[string]any{"revision": 2, "reason": long} },
		"signature": func(v map[string]any) { v["state"], v["signature"] = "Ended", long; delete(v, "countersignature") },
		"change": func(v map[string]any) {
			v["change"] = map[string]any{"event": long, "terms": v["terms"], "until": v["ends"], "approval": long}
		},
		"state": func(v map[string]any) { v["state"] = long },
		"versions without an end": func(v map[string]any) {
			if v["state"] == "Terminating" || v["state"] == "Ended" {
				v["state"] = "Active"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			w.create("p", s, nil)
			w.until("p", connectorv1alpha1.ReasonActive, s)
			versions := 100.0
			s.lie(func(v map[string]any) {
				if version, is := v["version"].(float64); is {
					versions++
					v["version"] = version + versions
					change(v)
				}
			})
			w.end("p")
			for range 40 {
				w.once("p")
			}
			if p := w.get("p"); !slices.Equal(w.clusters.log, parted) {
				t.Errorf("%s (%s): %q", reasonOf(p), messageOf(p), w.clusters.log)
			} else if len(p.Status.Record) > 64<<10 {
				t.Errorf("the record has %d bytes", len(p.Status.Record))
			}
		})
	}
}
