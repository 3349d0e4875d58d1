// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package saving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/uiserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = time.Date(2026, 11, 29, 10, 15, 0, 0, time.UTC)

func now() time.Time { return at }

const me = `{"name":"ada@example.com","context":"kind-secret","may":["patch providers"],"broker":{"id":"b","name":"north"},` +
	`"kinds":[{"kind":"providers"},{"kind":"consumers","missing":["list consumers"]},{"kind":"status"}]}`

// server answers as that of the page does: it is asked for me, and for the events in turn, and goes on until nobody listens.
func server(t *testing.T, me string, events ...string) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/me", func(w http.ResponseWriter, _ *http.Request) { uiserver.Answer(w, json.RawMessage(me)) })
	mux.HandleFunc("GET /api/v1/events", func(w http.ResponseWriter, r *http.Request) {
		if kinds := r.URL.Query().Get("kinds"); kinds != "providers,status" {
			t.Errorf("it asks for %q", kinds)
		}
		to := eventstream.Begin(w, time.Second)
		text := eventstream.Append(nil, eventstream.Event{ID: "0", Name: "reset", Data: []byte("{}")})
		for _, event := range events {
			text = eventstream.Append(text, eventstream.Event{Name: "set", Data: []byte(event)})
		}
		text = append(text, ": alive\n\n"...)
		text = eventstream.Append(text, eventstream.Event{ID: "n:1", Name: "synced", Data: []byte("{}")})
		text = eventstream.Append(text, eventstream.Event{ID: "n:2", Name: "set", Data: []byte(`{"kind":"providers","key":"later"}`)})
		for to.Send(text) == nil && r.Context().Err() == nil {
			text = []byte(": alive\n\n")
		}
	})
	return mux
}

// TestRead asks for everything up to one moment, and for nothing that comes after it.
func TestRead(t *testing.T) {
	const milan = `{"kind":"providers","key":"milan","provider":{"id":"milan"}}`
	m, err := Read(t.Context(), server(t, me, milan), now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"at":"2026-11-29T10:15:00Z","me":{"broker":{"id":"b","name":"north"},"kinds":[{"kind":"providers"},` +
		`{"kind":"consumers","missing":["list consumers"]},{"kind":"status"}],"may":["patch providers"],"name":"ada@example.com"},` +
		`"events":[` + milan + `]}`
	if string(text) != want {
		t.Errorf("it keeps\n%s\nand not\n%s", text, want)
	}
	const lacking = `{"kinds":[{"kind":"providers","missing":["list nodes"]}]}`
	if m, err = Read(t.Context(), server(t, lacking), now); err != nil || len(m.Events) != 0 {
		t.Errorf("of who may see nothing it keeps %v, %v", m, err)
	}
}

// TestReadRefused has the server answer otherwise.
func TestReadRefused(t *testing.T) {
	big := `{"kind":"providers","key":"` + strings.Repeat("a", maxThing-1000) + `"}`
	all := make([]string, MaxBytes/(maxThing-1000)+1)
	for i := range all {
		all[i] = big
	}
	refusing := func(w http.ResponseWriter, _ *http.Request) { uiserver.Refuse(w, http.StatusForbidden, "you may not") }
	for name, tc := range map[string]struct {
		server http.Handler
		says   string
		is     error
	}{
		"Refused":  {http.HandlerFunc(refusing), "you may not", nil},
		"NoJSON":   {server(t, me, "{"), "no JSON", nil},
		"OneLarge": {server(t, me, big+strings.Repeat(" ", 2000)), "64 MiB", ErrTooLarge},
		"AllLarge": {server(t, me, all...), "64 MiB", ErrTooLarge},
		"Ends": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/me") {
				uiserver.Answer(w, json.RawMessage(me))
			}
		}), "EOF", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(t.Context(), tc.server, now)
			if err == nil || !strings.Contains(err.Error(), tc.says) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestReadWaits asks again while not everything is ready.
func TestReadWaits(t *testing.T) {
	asked, ready := 0, server(t, `{"kinds":[]}`)
	_, err := Read(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			uiserver.Refuse(w, http.StatusServiceUnavailable, "not all has been read yet")
			return
		}
		ready.ServeHTTP(w, r)
	}), now)
	if err != nil || asked != 2 {
		t.Errorf("it has asked %d times: %v", asked, err)
	}
}

// TestReadLate has the server not tell everything in time.
func TestReadLate(t *testing.T) {
	waits := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	tells := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/me") {
				uiserver.Answer(w, json.RawMessage(me))
				return
			}
			_, _ = w.Write([]byte(text))
			waits(w, r)
		}
	}
	for name, tc := range map[string]struct {
		server http.HandlerFunc
		says   string
	}{
		"Silent": {waits, "ask who sees the page"},
		"Busy": {func(w http.ResponseWriter, _ *http.Request) {
			uiserver.Refuse(w, http.StatusServiceUnavailable, "all of Pod")
		}, "all of Pod"},
		"Nothing": {tells("event: reset\ndata: {}\n\n"), "nothing has come of providers, status"},
		"Begun":   {tells("event: set\ndata: {\"kind\":\"providers\"}\n\n"), "1 things, the last of providers"},
		"Within":  {tells("event: set\ndata: {\"kind\":"), "nothing has come of providers, status"},
	} {
		t.Run(name, func(t *testing.T) {
			late := errors.New("too late")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
			defer cancel()
			_, err := Read(ctx, tc.server, now)
			if !errors.Is(err, late) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// document is a page that is its data.
type document struct{ err error }

func (d document) Document(data []byte) ([]byte, error) { return data, d.err }

// TestWrite writes files over what may be there, and nothing else.
func TestWrite(t *testing.T) {
	m := &Moment{At: at, Me: json.RawMessage("{}"), Events: []json.RawMessage{}}
	for name, tc := range map[string]struct {
		reason  string
		prepare func(file string) error
		moment  *Moment
		page    document
		fails   string
	}{
		"New": {"A file is made.", nil, m, document{}, ""},
		"Over": {
			"A file is replaced, and its mode too.",
			func(f string) error { return os.WriteFile(f, []byte("old"), 0o644) }, m, document{}, "",
		},
		"Link": {
			"A link is kept.",
			func(f string) error { return os.Symlink("/dev/null", f) }, m, document{}, "no regular file",
		},
		"Folder": {
			"So is a folder.",
			func(f string) error { return os.Mkdir(f, 0o700) }, m, document{}, "no regular file",
		},
		"NoFolder": {
			"Its folder must be there.",
			func(f string) error { return os.Remove(filepath.Dir(f)) }, m, document{}, "no such file",
		},
		"Large": {
			"What is too large is refused.", nil,
			&Moment{At: at, Me: json.RawMessage(`"` + strings.Repeat("a", MaxBytes) + `"`)}, document{}, "64 MiB",
		},
		"Page": {"There must be a page.", nil, m, document{errors.New("no page")}, "no page"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "in", "page.html")
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if tc.prepare != nil {
				if err := tc.prepare(file); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := os.Lstat(file)
			err := Write(file, tc.page, tc.moment)
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Fatalf("%s\nthe error is %v", tc.reason, err)
			}
			left, _ := os.ReadDir(filepath.Dir(file))
			after, _ := os.Lstat(file)
			switch {
			case err == nil && (after.Mode() != 0o600 || len(left) != 1):
				t.Errorf("%s\nthe file has mode %s, and its folder %d", tc.reason, after.Mode(), len(left))
			case err != nil && (before == nil) != (after == nil), err != nil && after != nil && !os.SameFile(before, after), len(left) > 1:
				t.Errorf("%s\nthere are %v", tc.reason, left)
			}
		})
	}
}

// hidden returns events and who sees them without names.
func hidden(t *testing.T, events ...string) string {
	t.Helper()
	m := &Moment{At: at, Me: json.RawMessage(me)}
	for _, event := range events {
		m.Events = append(m.Events, json.RawMessage(event))
	}
	h, err := Hide(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHide puts pseudonyms in the place of names: the same for the same, wherever they are.
func TestHide(t *testing.T) {
	const milan = `{"kind":"providers","key":"id-milan","provider":{"id":"id-milan","name":"Milan"}}`
	finding := func(what string) string {
		text, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"kind":"status","key":"broker","status":{"next":[{"problem":true,"what":%s}]}}`, text)
	}
	for name, tc := range map[string]struct {
		reason string
		events []string
		want   string
	}{
		"Cluster": {
			"ID and name are one.", []string{milan},
			`{"key":"provider-1","kind":"providers","provider":{"id":"provider-1","name":"provider-1"}}`,
		},
		"Both": {
			"A cluster that consumes too is the same.",
			[]string{`{"kind":"consumers","key":"id-milan","consumer":{"id":"id-milan","name":"M"}}`, milan},
			`{"consumer":{"id":"provider-1","name":"provider-1"},"key":"provider-1","kind":"consumers"}`,
		},
		"Pod": {
			"Keys are made of pseudonyms.",
			[]string{`{"kind":"workloads","key":"rome/web-rome/db-0","workload":{"consumer":{"id":"rome","name":"Rome"},"namespace":"web",` +
				`"brokerNamespace":"web-rome","pod":"db-0","address":"10.0.0.1","ready":true,"status":"Running","why":"pod db-0 of acme"}}`},
			`{"key":"consumer-1/namespace-1/pod-1","kind":"workloads","workload":{"address":"address-1","brokerNamespace":"namespace-1",` +
				`"consumer":{"id":"consumer-1","name":"consumer-1"},"namespace":"namespace-2","pod":"pod-1","ready":true,"status":"Running"}}`,
		},
		"OwnPod": {
			"A consumer's own pods have no consumer before them, and brokers have one pseudonym.",
			[]string{`{"kind":"workloads","key":"web/db-0","workload":{"broker":{"id":"milan","name":"Milan"},"consumer":{"id":"me","name":"Me"},` +
				`"node":"liqo-milan","namespace":"web","pod":"db-0","ready":true}}`},
			`{"key":"namespace-1/pod-1","kind":"workloads","workload":{"broker":{"id":"broker-2","name":"broker-2"},` +
				`"consumer":{"id":"consumer-1","name":"consumer-1"},"namespace":"namespace-1","node":"node-1","pod":"pod-1","ready":true}}`,
		},
		"AtHome": {
			"What a consumer has at home is known from nowhere else.",
			[]string{`{"kind":"status","key":"consumer","status":{"healthy":false,"next":[{"problem":true,"what":"Pods of namespace acme run at home",` +
				`"do":"Make them again: kubectl -n acme delete pod db-0"}]}}`},
			`"next":[{"do":"","problem":true,"what":"` + leftOut + `"}]`,
		},
		"Sentence": {
			"Names in sentences, too.", []string{milan, finding("Provider Milan is away, MILAN")},
			`"Provider provider-1 is away, provider-1"`,
		},
		"InAName": {
			"And within names.", []string{milan, finding("kubectl get ns liqo-tenant-id-milan")},
			`"kubectl get ns liqo-tenant-provider-1"`,
		},
		"Condition": {
			"Not what others have written.", []string{milan, finding("Provider Milan (id-milan): acme is: gone (Lost)")},
			`"Provider provider-1 (Lost)"`,
		},
		"Unseen": {
			"Nor of those that may not be seen.",
			[]string{finding("Provider acme-1 (acme-2): it is gone (Lost)")}, `"what":"` + leftOut + `"`,
		},
		"UnseenDo": {
			"Nor in what to do about them.",
			[]string{finding("Look at the peering: liqoctl info peer acme, and whether it can be reached")}, `"what":"` + leftOut + `"`,
		},
		"UnseenGateway": {
			"Nor of who is peered and nothing else.",
			[]string{finding("0 of 1 replicas of Liqo's gateway to acme (acme) are ready: its tunnel does not work")}, `"what":"` + leftOut + `"`,
		},
		"Tenant": {
			"The namespace of a peer has a part of its ID.",
			[]string{milan, finding("See why: kubectl logs -n liqo-tenant-milan-acme12 deploy/gw-milan --previous")}, `"what":"` + leftOut + `"`,
		},
		"Do": {
			"What has nobody's name stays.",
			[]string{milan, finding("See why: kubectl describe pods -n liqo-broker. kubectl edit provider.brokering.liqo.io id-milan")},
			`"what":"See why: kubectl describe pods -n liqo-broker. kubectl edit provider.brokering.liqo.io provider-1"`,
		},
		"Blanks": {
			"Who is called so that a finding looks like no other gets nothing told.",
			[]string{
				`{"kind":"providers","key":"p","provider":{"id":"p","name":"a "}}`, finding("Provider a  (p): it is of acme (Lost)"),
			}, `"what":"` + leftOut + `"`,
		},
		"Reason": {
			"Who is called as a reason changes nothing of that.",
			[]string{milan, `{"kind":"policies","key":"lost","policy":{"name":"lost"}}`, finding("Provider Milan: it is of acme (Lost)")},
			`"what":"` + leftOut + `"`,
		},
		"Summary": {
			"Policies name providers.",
			[]string{
				milan, `{"kind":"providers","key":"p","provider":{"id":"p","name":"a, b"}}`,
				`{"kind":"policies","key":"x","policy":{"name":"x","summary":"Milan, a, b and 3 more"}}`,
			},
			`"summary":"provider-1, provider-2 and 3 more"`,
		},
		"SummaryUnseen": {
			"Also such that may not be seen.",
			[]string{milan, `{"kind":"policies","key":"x","policy":{"name":"x","summary":"Milan, acme-1 and 3 more"}}`}, `"summary":""`,
		},
		"Unit": {
			"Units of queries are whatever people write.",
			[]string{`{"kind":"providers","key":"p","provider":{"id":"p","kpis":[{"name":"acme","unit":"acme"},` +
				`{"name":"priceCPU","unit":"EUR/h"}]}}`},
			`"kpis":[{"name":"kpi-1","unit":""},{"name":"priceCPU","unit":"EUR/h"}]`,
		},
		"Traded": {
			"What is traded is called the same where something has happened to it.",
			[]string{
				`{"kind":"activity","key":"uid","activity":{"kind":"Purchase","name":"acme","reason":"Changed"}}`,
				`{"kind":"contracts","key":"buys/zebra","contract":{"name":"zebra"}}`,
				`{"kind":"contracts","key":"buys/acme","contract":{"name":"acme"}}`,
			}, `"activity":{"kind":"Purchase","name":"contract-2","reason":"Changed"}`,
		},
		"Query": {
			"Nor names of queries.", []string{milan, finding("Query acme: failed (No)")},
			`"what":"` + leftOut + `"`,
		},
		"Within": {
			"What has a name in a word is left out.", []string{milan, finding("Milano is away")},
			`"what":"` + leftOut + `"`,
		},
		"Cut": {
			"So is what has a part of a name.",
			[]string{
				`{"kind":"providers","key":"p","provider":{"id":"p","name":"a-very-long-name-of-it"}}`, finding("Provider a-very-long-na is away"),
			},
			`"what":"` + leftOut + `"`,
		},
		"CutEnd": {"And what was cut.", []string{milan, finding("Provider Mil...")}, `"what":"` + leftOut + `"`},
		"Control": {"Names are as sentences show them.", []string{
			`{"kind":"providers","key":"p","provider":{"id":"p","name":"a\u202eb"}}`, finding("Provider a?b is away"),
		}, `"Provider provider-1 is away"`},
		"Unknown": {
			"What is not known is left out.",
			[]string{`{"kind":"providers","key":"p","provider":{"id":"p","secret":"acme","labels":{"acme":"acme"}},"acme":1}`},
			`{"key":"provider-1","kind":"providers","provider":{"id":"provider-1","labels":{}}}`,
		},
		"NoWord": {
			"A word is only told if it is one.",
			[]string{`{"kind":"providers","key":"p","provider":{"id":"p","reason":"acme is gone","created":"acme"}}`},
			`"provider":{"id":"provider-1","reason":"word-1"}`,
		},
		"KPI": {
			"Names of queries are names.",
			[]string{`{"kind":"policies","key":"acme","policy":{"name":"acme","weights":{"acme":1,"freeCPU":2},"filters":["acme"]}}`},
			`"policy":{"name":"policy-1","weights":{"freeCPU":2,"kpi-1":1}}`,
		},
		"OthersWords": {
			"Nor if a name is in it, of which others have made a word.",
			[]string{
				`{"kind":"providers","key":"p","provider":{"id":"p","name":"acme-mi","labels":{"topology.kubernetes.io/region":"rome"}}}`,
				`{"kind":"activity","key":"uid","activity":{"kind":"Provider","reason":"AcmeMiHasGone"}}`,
				`{"kind":"workloads","key":"c/n/p","workload":{"status":"FromRome"}}`, finding("Provider acme-mi: it is gone (ToRome)"),
				`{"kind":"policies","key":"x","policy":{"name":"x","conditions":[{"type":"Ready","reason":"acme","status":"True"}]}}`,
			}, `"reason":"word-1","status":"True"`,
		},
		"Region": {
			"Nor in a sentence with the name of something that sentences do not name.",
			[]string{
				`{"kind":"providers","key":"p","provider":{"id":"p","labels":{"topology.kubernetes.io/region":"acme"}}}`,
				finding("Provider p is in Acme"),
			}, `"what":"` + leftOut + `"`,
		},
		"OursWords": {
			"What is called like a word of ours takes none away.",
			[]string{
				`{"kind":"providers","key":"p","provider":{"id":"p","name":"Running"}}`,
				`{"kind":"workloads","key":"c/n/p","workload":{"status":"Running"}}`,
			}, `"workload":{"status":"Running"}`,
		},
		"UsualResources": {
			"What all nodes have is the same for all, whatever something is called.",
			[]string{
				`{"kind":"providers","key":"p","provider":{"id":"p","capacity":{"free":{"cpu":"1","ephemeral-storage":"1Gi","memory":"2Gi"}}}}`,
				`{"kind":"workloads","key":"c/storage/memory","workload":{"namespace":"storage","pod":"memory","node":"cpu"}}`,
			},
			`"free":{"cpu":"1","ephemeral-storage":"1Gi","memory":"2Gi"}`,
		},
		"Long": {
			"Nor in one that is longer than any of which it is known.",
			[]string{`{"kind":"providers","key":"p","provider":{"id":"p","capacity":{"free":{"cpu":"1","nvidia.com/` +
				strings.Repeat("gpu", 20) + `":"1"}}}}`},
			`"free":{"cpu":"1"}`,
		},
		"Device": {
			"Nor in the name of what a node has.",
			[]string{`{"kind":"providers","key":"acme","provider":{"id":"acme","capacity":{"free":{"cpu":"1","nvidia.com/acme":"1"}}}}`},
			`"free":{"cpu":"1"}`,
		},
		"Activity": {
			"Who did it is a person, and what they say is left out.",
			[]string{`{"kind":"activity","key":"uid","activity":{"by":"ada@example.com","kind":"Provider","name":"p",` +
				`"message":"acme","reason":"Changed"}}`},
			`"activity":{"by":"person-1","kind":"Provider","message":"","name":"provider-1","reason":"Changed"}`,
		},
		"Step": {
			"Reasons of contracts are left out.",
			[]string{`{"kind":"contracts","key":"buys/acme","contract":{"name":"acme","party":{"id":"aaaabbbb","short":"aaaa","name":"acme"},` +
				`"steps":[{"to":"Ended","reason":"acme"}],"terms":{"url":"https://acme"}}}`},
			`{"contract":{"name":"contract-1","party":{"id":"party-1","name":"party-1",` +
				`"short":"party-1"},"steps":[{"to":"Ended"}]},"key":"buys/contract-1",` +
				`"kind":"contracts"}`,
		},
		"Me":    {"Who sees it has no name.", nil, `"me":{"broker":{"id":"broker-1","name":"broker-1"}`},
		"Other": {"A kind that is not known is left out.", []string{`{"kind":"acme","key":"acme"}`}, `"events":[]`},
		"Odd": {
			"What is no object is left out.", []string{`{"kind":"providers","key":1,"provider":["acme"]}`},
			`{"key":"","kind":"providers"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := hidden(t, tc.events...)
			if !strings.Contains(got, tc.want) {
				t.Errorf("%s\nit is\n%s\nwithout\n%s", tc.reason, got, tc.want)
			}
			if left := regexp.MustCompile(`(?i)acme|milan|rome|ada@|north|10\.0\.0|kind-secret`).FindString(got); left != "" {
				t.Errorf("%s\nit has %q:\n%s", tc.reason, left, got)
			}
		})
	}
}

// TestHideMany hides the names of many pods, each with a status of its own that a peer has made up: it takes no longer for that.
func TestHideMany(t *testing.T) {
	m := &Moment{Me: json.RawMessage("{}")}
	for i := range 20_000 {
		m.Events = append(m.Events, json.RawMessage(fmt.Sprintf(
			`{"kind":"workloads","key":"c/n/pod-%[1]d","workload":{"status":"Reason%[1]d","namespace":"n","pod":"pod-%[1]d"}}`, i)))
	}
	began := time.Now()
	h, err := Hide(m)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second || len(h.Events) != len(m.Events) {
		t.Errorf("of %d pods %d are there after %s", len(m.Events), len(h.Events), took)
	}
}

// otherFixed are the first parts of pseudonyms, and what stands for what is left out.
const otherFixed = " address- cluster- contract- event- kpi- label- namespace- node- object- offer- party- person- plan- pod- policy- " +
	"region- registry- request- word- zone- cpu memory pods ephemeral-storage left out, the reason is left out, there is none"

// FuzzHide puts a text that others have made up, with a name in it, into each field of all that can be shown: the name is nowhere in what
// is left, and nothing fails.
func FuzzHide(f *testing.F) {
	types := shownTypes(f)
	delete(types, "me")
	type place struct {
		kind  string
		field int
	}
	var places []place
	for _, kind := range inTurn {
		for field := range textsOf(types[kind]) {
			places = append(places, place{kind, field})
		}
	}
	for i := range places {
		f.Add(i, "Milan", "", "")
		f.Add(i, "id-of-milan", "Provider ", ": it is away (IdOfMilanIsGone)")
		f.Add(i, "milan", "In", "Gone")
		f.Add(i, "\u0130stanbul", "a: \xff\xfe", " is away...")
	}
	f.Fuzz(func(t *testing.T, at int, name, before, after string) {
		to := places[max(at, 0)%len(places)]
		name = strings.ToValidUTF8(name, "?")
		says := func(text string) map[string]bool {
			milan := apiv1.Provider{Cluster: apiv1.Cluster{ID: "1", Name: name}}
			events, err := json.Marshal([]any{
				map[string]any{"kind": "providers", "key": "1", "provider": milan},
				map[string]any{"kind": to.kind, "key": text, things[to.kind].field: filled(types[to.kind], to.field, text, "cpu")},
			})
			if err != nil {
				t.Fatal(err)
			}
			m := &Moment{Me: json.RawMessage("{}")}
			if err := json.Unmarshal(events, &m.Events); err != nil {
				t.Fatal(err)
			}
			h, err := Hide(m)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, event := range h.Events {
				textsIn(found, generic(t, event))
			}
			return found
		}
		told, usual := says(before+name+after), says("")
		lower := strings.ToLower(strings.TrimSpace(name))
		if utf8.RuneCountInString(lower) < inWords || !regexp.MustCompile(`\pL{3}`).MatchString(lower) {
			return // It is as short as words and numbers are.
		}
		if fixed := strings.ToLower(leftOut + strings.Join(ours, " ") + otherFixed); strings.Contains(fixed, lower) {
			return // It is in a text that is always the same.
		}
		for text := range told {
			if !usual[text] && strings.Contains(strings.ToLower(text), lower) {
				t.Errorf("of %q in field %d of %s there is %q", before+name+after, to.field, to.kind, text)
			}
		}
	})
}

// textsIn adds all texts of a value, and the keys of what it has.
func textsIn(to map[string]bool, value any) {
	switch value := value.(type) {
	case string:
		to[value] = true
	case []any:
		for _, one := range value {
			textsIn(to, one)
		}
	case map[string]any:
		for key, one := range value {
			to[key] = true
			textsIn(to, one)
		}
	}
}
