// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestGitHub checks that what the files for GitHub name is there: targets of make, and files. Workflows have few rights, and run no action
// of others that is not named by the hash of its commit.
func TestGitHub(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	target, file := regexp.MustCompile("(?:`|run: |^ +)make ([a-z -]+)"), regexp.MustCompile(`[A-Z]+\.md|\.ci/[a-z]+`)
	action, hash := regexp.MustCompile(`uses: *(\S+)`), regexp.MustCompile(`@[0-9a-f]{40}$`)
	seen := 0
	err = filepath.WalkDir(filepath.Join(root, ".github"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, found := range target.FindAllStringSubmatch(string(text), -1) {
			for word := range strings.FieldsSeq(found[1]) {
				seen++
				if !regexp.MustCompile(`(?m)^` + word + `:`).Match(makefile) {
					t.Errorf("%s runs make %s, which the Makefile does not have", name, word)
				}
			}
		}
		for _, found := range file.FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, found)); err != nil {
				t.Errorf("%s names %s: %v", name, found, err)
			}
		}
		for _, found := range action.FindAllStringSubmatch(string(text), -1) {
			if !hash.MatchString(found[1]) {
				t.Errorf("%s uses %s, which can change: name it by the hash of its commit", name, found[1])
			}
		}
		if filepath.Ext(name) != ".yml" {
			return nil
		}
		var of struct {
			Permissions map[string]string `json:"permissions"`
		}
		if err := yaml.Unmarshal(text, &of); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if filepath.Base(filepath.Dir(name)) == "workflows" && (len(of.Permissions) != 1 || of.Permissions["contents"] != "read") {
			t.Errorf("%s may do more than read: %v", name, of.Permissions)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 4 {
		t.Errorf("the files for GitHub run make %d times", seen)
	}
}

// goMod is what go.mod says of the modules that are needed, and of those that others replace.
type goMod struct {
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct{ Old, New struct{ Path string } }
}

func readGoMod(t *testing.T, folder string) (is goMod) {
	t.Helper()
	edit := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.Join(folder, "go.mod"))
	output, err := edit.Output()
	if err != nil {
		t.Fatalf("read %s: %v", edit.Args[4], err)
	}
	if err := json.Unmarshal(output, &is); err != nil { //nolint:musttag // go mod edit writes the names of its fields as they are.
		t.Fatal(err)
	}
	return is
}

// TestDependabot checks that what raises modules leaves alone what Liqo's code is compiled with: Liqo, what Liqo replaces, and what the
// modules that link Liqo name directly and in Liqo's version. It looks at all go.mod but those that choose what the lab runs.
func TestDependabot(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".github/dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Directories []string `json:"directories"`
			Ignore      []struct {
				Name string `json:"dependency-name"`
			} `json:"ignore"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil || len(config.Updates) != 1 {
		t.Fatalf("%d lists of modules: %v", len(config.Updates), err)
	}
	var ignored []string
	for _, ignore := range config.Updates[0].Ignore {
		ignored = append(ignored, ignore.Name)
	}

	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", liqo)
	list.Dir = root
	folder, err := list.Output()
	if err != nil {
		t.Fatalf("find Liqo: %v", err)
	}
	versions, pinned := map[string]string{}, map[string]bool{liqo: true}
	for _, m := range readGoMod(t, strings.TrimSpace(string(folder))).Require {
		versions[m.Path] = m.Version
	}
	for _, folder := range []string{".", virtualKubelet} {
		is := readGoMod(t, filepath.Join(root, folder))
		for _, m := range is.Require {
			if !m.Indirect && versions[m.Path] == m.Version {
				pinned[m.Path] = true
			}
		}
		for _, r := range is.Replace {
			if r.Old.Path != module {
				pinned[r.Old.Path] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(pinned)), ignored); diff != "" {
		t.Errorf(".github/dependabot.yml leaves other modules alone than Liqo pins: -pinned +ignored\n%s", diff)
	}

	// Files that Git leaves out, such as a patched copy of Liqo, are in folders with a dot.
	var folders []string
	for _, depth := range []string{"", "*/", "*/*/", "*/*/*/", "*/*/*/*/"} {
		files, err := filepath.Glob(filepath.Join(root, depth, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folder := path.Join("/", filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file), root)))
			if !strings.Contains(folder, "/.") && !within("/test/lab", folder) && !within("/test/conformance", folder) {
				folders = append(folders, folder)
			}
		}
	}
	slices.Sort(folders)
	if diff := cmp.Diff(folders, config.Updates[0].Directories); diff != "" {
		t.Errorf(".github/dependabot.yml looks at other folders than have a go.mod: -there +named\n%s", diff)
	}
}
