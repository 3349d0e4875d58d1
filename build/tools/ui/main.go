// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ui makes the page of the broker, pkg/ui/dist, of its sources in the folder ui, and the types ui/src/api.ts of the document of the
// HTTP API, and ui/src/trade.ts of that of trade. It needs no node, and the same sources give the same bytes. It fails where the page is
// larger than people should wait for, and where a file of others in ui/vendor is not the one that ui/vendor/versions.yaml says. It runs in
// the root folder of the repository.
//
// With -tests it bundles the tests of ui/test for node into a folder, and writes nothing else.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

const (
	sources  = "ui/src"
	vendored = "ui/vendor"
	dist     = "pkg/ui/dist"

	// The documents of the types that the page uses: of the API, and of trade.
	document, tradeDocument = "docs/api/openapi.yaml", "docs/api/trade.yaml"

	// saved is the script of a page that is a file: all in one, since there is nobody from whom it could load the rest.
	saved = "saved.js"

	// How many bytes may be sent, compressed: scripts and styles before anything is shown, all scripts, and all that is embedded.
	maxScript, maxStyle, maxScripts, maxAll = 45 << 10, 8 << 10, 60 << 10, 150_000
)

func main() {
	tests := flag.String("tests", "", "bundle the tests for node into this folder, and write nothing else")
	flag.Parse()
	if err := run(*tests); err != nil {
		fmt.Fprintln(os.Stderr, "ui:", err)
		os.Exit(1)
	}
}

func run(tests string) error {
	packages, err := readVendored(vendored, "ui/package-lock.json")
	if err != nil {
		return err
	}
	if tests != "" {
		return bundleTests(packages, tests)
	}
	needed, wanted := roots()
	if err := writeTypes(document, "api.ts", needed, wanted); err != nil {
		return err
	}
	if err := writeTypes(tradeDocument, "trade.ts", tradeRoots(), nil); err != nil {
		return err
	}
	files, err := page(packages)
	if err != nil {
		return err
	}
	return write(files)
}

// writeTypes writes the types of a document into a file of the sources.
func writeTypes(document, file string, needed, wanted []string) error {
	spec, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	types, err := typesOf(document, spec, needed, wanted)
	if err != nil {
		return fmt.Errorf("make types of %s: %w", document, err)
	}
	return os.WriteFile(filepath.Join(sources, file), types, 0o644)
}

// page returns the files of the page by name, not compressed.
func page(packages []vendoredPackage) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, source := range []string{"app.tsx", "app.css"} {
		options := minified(bundling(packages))
		options.EntryPoints = []string{filepath.Join(sources, source)}
		options.Splitting, options.ChunkNames = true, "[name]-[hash]" // What is imported when it is needed is a file of its own.
		built, err := bundle(options)
		if err != nil {
			return nil, err
		}
		for _, file := range built {
			files[filepath.Base(file.Path)] = file.Contents
		}
	}
	options := minified(bundling(packages))
	options.EntryPoints, options.Define = []string{filepath.Join(sources, "app.tsx")}, map[string]string{isSaved: "true"}
	built, err := bundle(options)
	if err != nil {
		return nil, err
	}
	files[saved] = built[0].Contents
	if files["index.html"], err = os.ReadFile(filepath.Join(sources, "index.html")); err != nil {
		return nil, err
	}
	files["licences.txt"] = licencesOf(packages)
	return files, nil
}

// isSaved is the name by which sources ask whether they are those of a saved page. What is for the other is left out.
const isSaved = "SAVED"

func minified(options api.BuildOptions) api.BuildOptions {
	options.MinifyWhitespace, options.MinifyIdentifiers, options.MinifySyntax = true, true, true
	return options
}

// bundling returns how sources of the page are bundled, with the packages of others under the names by which they are imported.
func bundling(packages []vendoredPackage) api.BuildOptions {
	aliases := map[string]string{}
	for _, p := range packages {
		for _, f := range p.Files {
			if f.Import != "" {
				aliases[f.Import] = "./" + filepath.ToSlash(filepath.Join(vendored, p.Folder, f.Name))
			}
		}
	}
	return api.BuildOptions{
		Bundle: true, Alias: aliases, Outdir: "out", Target: api.ES2024, Format: api.FormatESModule, Charset: api.CharsetASCII,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", LegalComments: api.LegalCommentsNone, LogLevel: api.LogLevelSilent,
		Define:      map[string]string{isSaved: "false"},
		TsconfigRaw: "{}", // What ui/tsconfig.json says is for who checks types.
	}
}

func bundle(options api.BuildOptions) ([]api.OutputFile, error) {
	result := api.Build(options)
	if len(result.Errors) > 0 || len(result.Warnings) > 0 {
		messages := api.FormatMessages(slices.Concat(result.Errors, result.Warnings), api.FormatMessagesOptions{})
		return nil, fmt.Errorf("bundle %s: %s", strings.Join(options.EntryPoints, ", "), strings.Join(messages, "\n"))
	}
	return result.OutputFiles, nil
}

// bundleTests writes the tests of ui/test into a folder, so that node runs them without knowing TypeScript.
func bundleTests(packages []vendoredPackage, folder string) error {
	found, err := filepath.Glob("ui/test/*.test.ts")
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no test is in ui/test")
	}
	options := bundling(packages)
	options.EntryPoints, options.Outdir, options.Write = found, folder, true
	options.OutExtension = map[string]string{".js": ".mjs"}
	options.Platform, options.External = api.PlatformNode, []string{"node:*"}
	_, err = bundle(options)
	return err
}

// write writes the files, compressed, in the place of all that was there, unless they are too large.
func write(files map[string][]byte) error {
	all := 0
	packed := map[string][]byte{}
	for name, data := range files {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression) // Without a name and a time, which are empty by default.
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		packed[name+".gz"] = out.Bytes()
		all += out.Len()
	}
	first, scripts := 0, 0
	for name, data := range packed {
		if !strings.HasSuffix(name, ".js.gz") || name == saved+".gz" { // A browser is not sent the latter.
			continue
		}
		scripts += len(data)
		if isFirst(name, files["app.js"]) {
			first += len(data)
		}
	}
	for _, of := range []struct {
		what       string
		size, most int
	}{{"first script", first, maxScript}, {"scripts", scripts, maxScripts}, {"style", len(packed["app.css.gz"]), maxStyle}} {
		if of.size > of.most {
			return fmt.Errorf("the %s of the page: %d bytes, and there may be %d", of.what, of.size, of.most)
		}
	}
	if all > maxAll {
		return fmt.Errorf("the page has %d bytes, and may have %d", all, maxAll)
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for name, data := range packed {
		if err := os.WriteFile(filepath.Join(dist, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("ui: %d bytes of script before anything is shown, %d in all scripts, %d of style, %d in all\n",
		first, scripts, len(packed["app.css.gz"]), all)
	return nil
}

// isFirst reports whether a browser needs a script before it shows anything: it is the first one, or one that this imports at once.
func isFirst(name string, app []byte) bool {
	name = strings.TrimSuffix(name, ".gz")
	return name == "app.js" || bytes.Contains(app, []byte(`from"./`+name+`"`)) || bytes.Contains(app, []byte(`import"./`+name+`"`))
}
