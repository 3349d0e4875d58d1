// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/deploy"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// exported is what a repository of manifests holds in the place of an installation.
type exported struct {
	// role is the component of Liqo's patches: broker, consumer or trader; empty where Liqo is not patched.
	role string
	// groups are objects of ours by the paths of their files, which are applied in the order of these.
	groups map[string][]*unstructured.Unstructured
	// remoteIPAM is where virtual kubelets ask for addresses, for a consumer.
	remoteIPAM string
	// kubelets is the step that no repository can take; without changes there is none.
	kubelets step
}

// export writes it into the folder that was chosen, which must be empty or not there, and says what is left to do.
func (i *Installer) export(ctx context.Context, e exported) error {
	// All is known before the first file is written.
	files, err := i.components(e)
	if err != nil {
		return err
	}
	folders := map[string][]string{}
	for file, objects := range e.groups {
		if files[file], err = written(objects); err != nil {
			return err
		}
		folders[path.Dir(file)] = append(folders[path.Dir(file)], path.Base(file))
	}
	// Each folder is one of kustomize's.
	for folder, resources := range folders {
		slices.Sort(resources)
		text, err := yaml.Marshal(kustomization{APIVersion: "kustomize.config.k8s.io/v1beta1", Kind: "Kustomization", Resources: resources})
		if err != nil {
			return fmt.Errorf("write the kustomization %s: %w", folder, err)
		}
		files[path.Join(folder, kustomizationFile)] = text
	}
	var left []change
	if e.kubelets.changes != nil {
		if left, err = e.kubelets.changes(ctx); err != nil {
			return err
		}
	}

	if err := writeNew(i.options.Export, files); err != nil {
		return fmt.Errorf("export to %s: %w", i.options.Export, err)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(i.run.out, "      wrote %s\n", file)
	}
	if len(left) > 0 {
		fmt.Fprintf(i.run.out, "      %d virtual nodes have another virtual kubelet, which no repository changes: when the rest is applied, run "+
			"the same command without --export\n", len(left))
	}
	return nil
}

// kustomizationFile is the name that kustomize looks for.
const kustomizationFile = "kustomization.yaml"

// components returns the kustomize components that patch Liqo, for its objects and for a HelmRelease of Flux, with the images that were
// chosen.
func (i *Installer) components(e exported) (map[string][]byte, error) {
	if e.role == "" {
		return map[string][]byte{}, nil
	}
	var stock Options
	if err := stock.complete(); err != nil {
		return nil, err
	}
	names := []string{"REMOTE_IPAM", e.remoteIPAM}
	for _, name := range []string{liqo.VirtualKubeletImage, sidecarImage} {
		names = append(names, stock.image(name), i.options.image(name))
	}
	chosen := strings.NewReplacer(names...)
	files := map[string][]byte{}
	for to, from := range map[string]string{"liqo": e.role, "flux": path.Join("flux", e.role)} {
		text, err := deploy.Files.ReadFile(path.Join("liqo/component", from, kustomizationFile))
		if err != nil {
			return nil, fmt.Errorf("read the component of a %s: %w", e.role, err)
		}
		files[path.Join(to, kustomizationFile)] = []byte(chosen.Replace(string(text)))
	}
	return files, nil
}

// written returns objects as a manifest.
func written(objects []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for n, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", describe(object), err)
		}
		if n > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// writeNew writes files into a folder with nothing in it.
func writeNew(folder string, files map[string][]byte) error {
	there, err := os.ReadDir(folder)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case len(there) > 0:
		return requirement("it is not empty, and what is there may be of another cluster: name a folder that is not there")
	}
	for name, text := range files {
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, text, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// exportBroker writes what Install would apply.
func (i *Installer) exportBroker(ctx context.Context) error {
	offering, err := i.offering()
	if err != nil {
		return err
	}
	flags, err := managerFlags("controller-manager-broker.json", i.options.image(kubeletImage), "")
	if err != nil {
		return err
	}
	groups := map[string][]*unstructured.Unstructured{"offering/namespaceoffloading.yaml": offering}
	if err := i.exportDaemon(ctx, groups); err != nil {
		return err
	}
	return i.export(ctx, exported{role: "broker", groups: groups, kubelets: i.withKubelets(flags)})
}

// exportDaemon adds to the files what daemonSteps apply.
func (i *Installer) exportDaemon(ctx context.Context, groups map[string][]*unstructured.Unstructured) error {
	if i.ofHelm {
		fmt.Fprintln(i.run.out, "      without the daemon and the guard, which Helm runs")
		return nil
	}
	base, err := i.manifests()
	if err != nil {
		return err
	}
	kinds := kindsOf(base)
	if groups["broker/broker.yaml"], err = i.withChoices(ctx, base[kinds:]); err != nil {
		return err
	}
	groups["broker/kinds.yaml"] = base[:kinds]
	return i.exportRules(ctx, groups, "broker/rules.yaml", "admission")
}

// exportRules adds to the files the rules of a folder, where Kubernetes has such.
func (i *Installer) exportRules(ctx context.Context, groups map[string][]*unstructured.Unstructured, to, folder string) error {
	rules, _, err := i.rules(ctx, folder)
	if err == nil && len(rules) > 0 {
		groups[to] = rules
	}
	return err
}

// exportConsumer writes what Prepare would apply.
func (i *Installer) exportConsumer(ctx context.Context, remoteIPAM string) error {
	flags, err := managerFlags("controller-manager-consumer.json", i.options.image(kubeletImage), remoteIPAM)
	if err != nil {
		return err
	}
	return i.export(ctx, exported{role: "consumer", remoteIPAM: remoteIPAM, kubelets: i.withKubelets(flags)})
}

// exportGuard writes what Guard would apply on a cluster that is no broker.
func (i *Installer) exportGuard(ctx context.Context) error {
	args, err := i.managerArgs(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(args, isOtherPlugin) {
		return requirement("Liqo asks somebody else than a connector what to offer here, and a broker has a guard: export what install applies")
	}
	flags, err := managerFlags("controller-manager-trader.json", i.options.image(kubeletImage), "")
	if err != nil {
		return err
	}
	groups, err := i.guardFiles(ctx)
	if err != nil {
		return err
	}
	return i.export(ctx, exported{role: "trader", groups: groups, kubelets: i.withKubelets(flags)})
}

// guardFiles returns what the steps guarding apply.
func (i *Installer) guardFiles(ctx context.Context) (map[string][]*unstructured.Unstructured, error) {
	wanted, err := i.guardObjects()
	if err != nil {
		return nil, err
	}
	groups := map[string][]*unstructured.Unstructured{}
	if groups["guard/guard.yaml"], err = i.withChoices(ctx, wanted); err != nil {
		return nil, err
	}
	return groups, i.exportRules(ctx, groups, "guard/rules.yaml", "guard/policies")
}

// withKubelets is the step that gives the virtual kubelets that exist what flags of Liqo's controller manager say.
func (i *Installer) withKubelets(flags []string) step {
	return i.virtualKubelets("", true, func(d *appsv1.Deployment) error { return addFlags(d, flags, outdated) })
}
