// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/test/docs"
	"github.com/capacitorset/liqo-broker/test/lab/node"
)

// A Reader does what a page says, block after block, each on the cluster that its comment names, with the programs of the repository and of
// the lab. Who gets one closes it. It must not be used concurrently.
type Reader struct {
	*docs.Reader

	f *Federation
	// folder is where the commands run.
	folder string
	// instead has what the federation has in the place of things that it cannot reach.
	instead *strings.Replacer
	shell   *docs.Shell // Nil as long as nothing runs.
	made    []string    // Folders that end with the reader.
}

// Read returns a reader of the blocks of a page that a function runs (docs.Read), in the folder of the repository. The pairs are texts of
// commands, and what the federation has in their place.
func (f *Federation) Read(page, in string, instead ...string) (*Reader, error) {
	blocks, err := docs.Read(f.root, page, in)
	if err != nil {
		return nil, err
	}
	inline, err := docs.ReadInline(f.root, page)
	if err != nil {
		return nil, err
	}
	r := &Reader{
		Reader: &docs.Reader{Blocks: blocks, Inline: inline, Values: map[string]string{}}, f: f, folder: f.root,
		instead: strings.NewReplacer(append(instead, "--image=nginx", "--image=lab.local/web:1")...),
	}
	r.Run = r.run
	return r, nil
}

// exampleParty is what stands in the examples for the ID of a party, and for a fingerprint.
var exampleParty = strings.Repeat("a", 52)

// inLab has what is otherwise in the release that a reader has than in what people get, by file: the images are those that were built last;
// the small nodes of the lab sell nearly all that they have, in sizes of an eighth; and workloads leave quickly, so that journeys do not
// wait.
func inLab(version, tag string) map[string][]string {
	return map[string][]string{
		"deploy/connector/kustomization.yaml": {"newTag: " + version, "newTag: " + tag},
		"deploy/registry/kustomization.yaml":  {"newTag: " + version, "newTag: " + tag},
		"deploy/chart-connector/Chart.yaml":   {"appVersion: " + version, "appVersion: " + tag},
		"deploy/connector/deployment.yaml":    {`share: "30"`, `share: "90"`, "drain: 5m", "drain: 20s"},
		"deploy/chart-connector/values.yaml":  {"\nshare: 30\n", "\nshare: 90\n", "\ndrain: 5m\n", "\ndrain: 20s\n"},
		"deploy/examples/trade/offer.yaml": {
			`cpu: "1"`, "cpu: 125m", `cpu: "2"`, "cpu: 250m", `cpu: "16"`, `cpu: "2"`, `pods: "10"`, `pods: "2"`, `pods: "30"`, `pods: "6"`,
			`pods: "110"`, `pods: "22"`, `per: "1"`, "per: 125m", "per: 1Gi", "per: 128Mi",
			"memory: 1Gi", "memory: 128Mi", "memory: 2Gi", "memory: 256Mi", "memory: 4Gi", "memory: 512Mi", "memory: 64Gi", "memory: 8Gi",
		},
		"deploy/examples/trade/capacityrequest.yaml": {`cpu: "2"`, "cpu: 250m", "memory: 4Gi", "memory: 512Mi", `pods: "20"`, `pods: "4"`},
		"deploy/examples/trade/purchase.yaml":        {`cpu: "3"`, "cpu: 375m", "memory: 6Gi", "memory: 768Mi", `pods: "20"`, `pods: "4"`},
	}
}

// replaced are texts of the pages about trading, each with what stands in its place: the tag of the images and the sizes are those of the
// lab, and Helm upgrades what an earlier run on the lab has left.
func replaced(tag string) []string {
	return []string{
		"helm install", "helm upgrade --install",
		"kubectl liqo-broker guard", "kubectl liqo-broker guard --tag=" + tag,
		"kubectl liqo-broker prepare", "kubectl liqo-broker prepare --tag=" + tag,
		"--cpu 2 --memory 4Gi", "--cpu 250m --memory 512Mi", "--pods 20", "--pods 4",
	}
}

// ReadRelease is Read for somebody who has a release whose images the lab has, in a folder that this reader may change.
func (f *Federation) ReadRelease(page, in string, instead ...string) (*Reader, error) {
	options, err := f.images()
	if err != nil {
		return nil, err
	}
	r, err := f.Read(page, in, append(instead, replaced(options.Tag)...)...)
	if err != nil {
		return nil, err
	}
	if err := r.unpack(options.Tag); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// releaseVersion finds the version of a release, which the manifests name.
var releaseVersion = regexp.MustCompile(`newTag: (v\S+)`)

// unpack gives the reader a release.
func (r *Reader) unpack(tag string) (err error) {
	if r.folder, err = r.temporary("release"); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(r.folder, "deploy"), os.DirFS(r.f.path("deploy"))); err != nil {
		return err
	}
	manifest, err := os.ReadFile(r.f.path("deploy", "connector", "kustomization.yaml"))
	if err != nil {
		return err
	}
	found := releaseVersion.FindSubmatch(manifest)
	if found == nil {
		return errors.New("deploy/connector/kustomization.yaml names no version")
	}
	for file, changes := range inLab(string(found[1]), tag) {
		if err := r.Edit(file, changes...); err != nil {
			return err
		}
	}
	return nil
}

// run runs the commands of a block, in a shell that all blocks share, or on the machine of the registry.
func (r *Reader) run(ctx context.Context, b docs.Block, script string) (string, error) {
	if len(b.On) != 1 {
		return "", fmt.Errorf("which of %s is meant?", strings.Join(b.On, ", "))
	}
	script = r.instead.Replace(script)
	if b.On[0] == registryName {
		var out bytes.Buffer
		err := r.f.lab.Host(registryName).Exec(ctx,
			node.Command{Args: []string{"bash", "-euo", "pipefail", "-c", script}, Stdout: &out, Stderr: &out})
		return out.String(), err
	}
	on := r.f.ProviderA // Pages for all say "provider".
	if b.On[0] != "provider" {
		at := slices.IndexFunc(r.f.Clusters(), func(c *Cluster) bool { return c.Name == b.On[0] })
		if at < 0 {
			return "", fmt.Errorf("there is no cluster %q", b.On[0])
		}
		on = r.f.Clusters()[at]
	}
	if r.shell == nil {
		if err := r.start(ctx); err != nil {
			return "", err
		}
	}
	// As people have it who reach all clusters: the first file says which of them is meant.
	kubeconfigs := []string{on.Lab.KubeconfigPath()}
	for _, c := range r.f.Clusters() {
		if c != on {
			kubeconfigs = append(kubeconfigs, c.Lab.KubeconfigPath())
		}
	}
	return r.shell.Run("KUBECONFIG", strings.Join(kubeconfigs, string(filepath.ListSeparator)), script)
}

// start starts the shell, which knows nothing of who runs it.
func (r *Reader) start(ctx context.Context) error {
	home, err := r.temporary("home")
	if err != nil {
		return err
	}
	path := strings.Join([]string{r.f.path("bin"), filepath.Dir(r.f.Broker.Lab.KubectlPath()), r.f.Broker.Lab.LiqoPath(), os.Getenv("PATH")},
		":")
	r.shell, err = docs.NewShell(ctx, r.folder, home, "PATH="+path, "HOME="+home, "NO_COLOR=1")
	return err
}

// temporary makes a folder that ends with the reader.
func (r *Reader) temporary(name string) (string, error) {
	folder, err := os.MkdirTemp("", name+"-")
	if err == nil {
		r.made = append(r.made, folder)
	}
	return folder, err
}

// All runs the blocks that are left.
func (r *Reader) All(ctx context.Context) error {
	for len(r.Blocks) > 0 {
		if _, err := r.Next(ctx, ""); err != nil {
			return err
		}
	}
	return nil
}

// only leaves the blocks that are for a cluster, for that one alone.
func (r *Reader) only(on *Cluster) {
	r.Blocks = slices.DeleteFunc(r.Blocks, func(b docs.Block) bool { return !slices.Contains(b.On, on.Name) })
	for i := range r.Blocks {
		r.Blocks[i].On = []string{on.Name}
	}
}

// Edit changes a file of the reader's folder as people do who have read the page: texts, and what stands in their place. It is an error if
// one is not there.
func (r *Reader) Edit(file string, changes ...string) error {
	file = filepath.Join(r.folder, file)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i := 0; i < len(changes); i += 2 {
		if !bytes.Contains(text, []byte(changes[i])) {
			return fmt.Errorf("%s has no %q, which people are to replace", file, changes[i])
		}
	}
	return os.WriteFile(file, []byte(strings.NewReplacer(changes...).Replace(string(text))), 0o644)
}

// Close ends what the commands have left in the background.
func (r *Reader) Close() error {
	var errs []error
	if r.shell != nil {
		errs = append(errs, r.shell.Close())
	}
	for _, folder := range r.made {
		errs = append(errs, os.RemoveAll(folder))
	}
	return errors.Join(errs...)
}
