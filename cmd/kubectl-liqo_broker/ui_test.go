// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/uiserver"
)

// TestUI serves the page until it is interrupted: with a link that opens it, and data for who has opened it.
func TestUI(t *testing.T) {
	c := newCLI(t, well()...)
	read, write := io.Pipe()
	root := c.rootTo(t, genericiooptions.IOStreams{In: strings.NewReader(""), Out: write, ErrOut: io.Discard})
	root.SetArgs([]string{"ui", "--no-open", "--open", "/map", "--server", "https://127.0.0.1:1"})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		write.CloseWithError(err)
		ran <- err
	}()
	var address, code string
	for lines := bufio.NewScanner(read); code == "" && lines.Scan(); {
		if found := regexp.MustCompile(`(http://127\.0\.0\.1:\d+/)#code=(\w+)&to=/map$`).FindStringSubmatch(lines.Text()); found != nil {
			address, code = found[1], found[2]
		}
	}
	if code == "" {
		t.Fatalf("it shows no link: %v", <-ran)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	for _, tc := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{http.MethodGet, "", "", http.StatusOK, "<script"},
		{http.MethodGet, "api/v1/me", "", http.StatusUnauthorized, "needs the key"},
		{http.MethodPost, "session", `{"code":"` + code + `"}`, http.StatusOK, `"key"`},
		{http.MethodPost, "session/link", "", http.StatusNoContent, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, address+tc.path, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != tc.status || !strings.Contains(string(text), tc.says) {
			t.Errorf("%s %s: %s, %v: %s", tc.method, tc.path, answer.Status, err, text)
		}
	}
	cancel()
	if err := <-ran; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// TestUIUsage asks for what is no route, and for what does not go together.
func TestUIUsage(t *testing.T) {
	for line, says := range map[string]string{
		"ui --open a#b":                      "no route",
		"ui --save page.html --port 8443":    "--save does not go with --port",
		"ui --save page.html --open /map":    "--save does not go with --open",
		"ui --save= --hide-names":            "--save needs the name of a file",
		"ui --hide-names":                    "--hide-names needs --save",
		"ui --save page.html --port 0":       "--save does not go with --port",
		"ui --save page.html another.html":   "another.html",
		"ui --hide-names --no-open --port 0": "--hide-names needs --save",
		"ui --timeout 1s":                    "--timeout needs --save",
		"ui --save page.html --timeout 0s":   "--timeout must be positive",
	} {
		if _, _, err := newCLI(t, well()...).run(t, line); program.ExitCode(err) != program.ExitUsage || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestUISave writes the page into a file: all of it or without names, and not over what is no regular file.
func TestUISave(t *testing.T) {
	const milan = `{"kind":"providers","key":"milan","provider":{"id":"milan","name":"</script><script>alert(1)</script>"}}`
	data := http.NewServeMux()
	data.HandleFunc("GET /api/v1/me", func(w http.ResponseWriter, _ *http.Request) {
		uiserver.Answer(w, json.RawMessage(`{"name":"ada","context":"kind-secret","may":[],"kinds":[{"kind":"providers"}]}`))
	})
	data.HandleFunc("GET /api/v1/events", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "event: reset\ndata: {}\n\nevent: set\ndata: %s\n\nevent: synced\ndata: {}\n\n", milan)
	})
	for name, tc := range map[string]struct {
		hide bool
		has  string
	}{
		"Names":   {false, `"name":"\u003c/script\u003e\u003cscript\u003ealert(1)\u003c/script\u003e"`},
		"NoNames": {true, `{"id":"provider-1","name":"provider-1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "page.html")
			var out strings.Builder
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			r := newReading(&session{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}})
			r.to.addFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
			if err := r.save(t.Context(), &page{save: file, hide: tc.hide, timeout: time.Minute}, data); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if document := string(text); !strings.Contains(document, tc.has) || strings.Contains(document, "alert(1)</script>") ||
				strings.Contains(document, "kind-secret") || tc.hide == strings.Contains(document, "milan") {
				_, found, _ := strings.Cut(document, `id="data"`)
				t.Errorf("the data are %.400s", found)
			}
			if !strings.Contains(out.String(), "is saved in "+file) {
				t.Errorf("it says %q", out.String())
			}
		})
	}
	link := filepath.Join(t.TempDir(), "page.html")
	if err := os.Symlink("elsewhere.html", link); err != nil {
		t.Fatal(err)
	}
	_, _, err := newCLI(t, well()...).run(t, "ui --save "+link)
	if err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("over a link: %v", err)
	}
}

// TestUISaveLate saves the page of an API server that never answers.
func TestUISaveLate(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(t.TempDir(), "page.html")
	line := []string{"ui", "--save", file, "--timeout", "100ms", "--server", silent.URL}
	err := run(t.Context(), line, genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") || !strings.Contains(err.Error(), silent.URL) {
		t.Errorf("the error is %v", err)
	}

	// What answers at first may be silent then.
	r := newReading(&session{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}})
	r.to.addFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
	err = r.save(t.Context(), &page{save: file, timeout: 100 * time.Millisecond}, silent.Config.Handler)
	if err == nil || !strings.Contains(err.Error(), "has not told everything within 100ms: ask who sees the page") {
		t.Errorf("the error is %v", err)
	}
}

// TestUIAnywhere opens the page of clusters with either line of Liqo that know nothing of brokers, but not of one without Liqo.
func TestUIAnywhere(t *testing.T) {
	for name, tc := range map[string]struct {
		adds []func(*k8sruntime.Scheme) error
		says string
	}{
		"Liqo 0.9":  {[]func(*k8sruntime.Scheme) error{v09.Line{}.AddToScheme}, "is shown at http://127.0.0.1:"},
		"Liqo 1.x":  {[]func(*k8sruntime.Scheme) error{v1.Line{}.AddToScheme}, "is shown at http://127.0.0.1:"},
		"a trader":  {[]func(*k8sruntime.Scheme) error{v09.Line{}.AddToScheme, connectorv1alpha1.AddToScheme}, "is shown at http://127.0.0.1:"},
		"no Liqo":   {nil, "it has no Liqo"},
		"no broker": {[]func(*k8sruntime.Scheme) error{v1alpha1.AddToScheme}, "it has no Liqo"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := k8sruntime.NewScheme()
			for _, add := range append(tc.adds, clientgoscheme.AddToScheme) {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			mapper := testrestmapper.TestOnlyStaticRESTMapper(scheme)
			c := &cli{client: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).Build()}
			ctx, cancel := context.WithCancel(t.Context())
			read, write := io.Pipe()
			root := c.rootTo(t, genericiooptions.IOStreams{In: strings.NewReader(""), Out: write, ErrOut: io.Discard})
			root.SetArgs([]string{"ui", "--no-open", "--server", "https://127.0.0.1:1"})
			ran := make(chan error, 1)
			go func() {
				err := root.ExecuteContext(ctx)
				write.CloseWithError(io.EOF)
				ran <- err
			}()
			lines := bufio.NewScanner(read)
			lines.Scan()
			said := lines.Text()
			cancel()
			go func() { _, _ = io.Copy(io.Discard, read) }()
			if err := <-ran; err != nil {
				said += err.Error()
			}
			if !strings.Contains(said, tc.says) {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// TestOpener chooses by what a browser is opened.
func TestOpener(t *testing.T) {
	for name, tc := range map[string]struct {
		system, display string
		want            string
		err             error
	}{
		"Windows":   {"windows", "", "rundll32", nil},
		"Mac":       {"darwin", "", "open", nil},
		"Desktop":   {"linux", ":0", "xdg-open", nil},
		"NoDesktop": {"linux", "", "", errNoBrowser},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", t.TempDir()) // Which browser it is, nobody says.
			got, err := openerOf(t.Context(), tc.system, func(string) string { return tc.display })
			if !errors.Is(err, tc.err) || len(got) > 0 && got[0] != tc.want || (len(got) == 0) != (tc.want == "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	for desktop, want := range map[string]bool{
		"firefox_firefox.desktop\n": true, "chromium_chromium.desktop": true, "firefox-esr.desktop\n": false, "google-chrome.desktop": false,
		"": false,
	} {
		if confined(desktop) != want {
			t.Errorf("%q is a snap: %t", desktop, !want)
		}
	}
}

// TestBrowse opens a link by a program that reads its file: only its user can, and the file goes.
func TestBrowse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the programs that open files are others")
	}
	bin, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	const reads = "#!/bin/sh\n/bin/stat -c '%%a %%n' \"$1\" > %[1]s\n/bin/stat -c '%%a' \"${1%%/*}\" >> %[1]s\n/bin/cat \"$1\" >> %[1]s\n"
	script := fmt.Sprintf(reads, seen)
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv("DISPLAY", ":0")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- browse(ctx, `http://127.0.0.1:1/#code=A&to=/"><script>`) }()
	var text string
	for range 100 {
		if written, err := os.ReadFile(seen); err == nil && strings.Contains(string(written), "</title>") {
			text = string(written)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	first, rest, _ := strings.Cut(text, "\n")
	mode, file, _ := strings.Cut(first, " ")
	const leads = "url=http://127.0.0.1:1/#code=A&amp;to=/&#34;&gt;&lt;script&gt;"
	if mode != "600" || !strings.HasPrefix(rest, "700\n") || !strings.Contains(rest, leads) {
		t.Errorf("the browser sees\n%s", text)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", file, err)
	}
}
