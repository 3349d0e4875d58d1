// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/test/lab/image"
)

// DefaultLiqo is the line of Liqo that a lab has unless told otherwise.
const DefaultLiqo = "0.9"

// liqoModule is the path of Liqo's module in all its lines.
const liqoModule = "github.com/liqotech/liqo"

// liqoRegistry is where Liqo's charts look for Liqo's images.
const liqoRegistry = "ghcr.io/liqotech/"

// liqoLine is a line of Liqo's versions. Its module in test/lab/liqo names the version that is built.
type liqoLine struct {
	version string
	// module is the folder of the module below the source tree. A folder patches in it has the line built from a patched copy of Liqo.
	module  string
	patched bool
	// programs are the folders of the programs below cmd.
	programs []string
	ldflags  string
	// layered are images of another kind than one program by itself; base is the layer that they stand on, liqo the folder of Liqo's
	// programs, and programs that of the lab's own.
	layered func(base image.Layer, liqo, programs string) []image.Image
	// single are the images that have one program by itself, which is called like the last element of the name in Liqo's registry.
	single []string
}

// liqoLines returns the lines that the lab can build.
func liqoLines() map[string]liqoLine {
	return map[string]liqoLine{
		"0.9": {
			version: "v0.9.4", module: "test/lab/liqo/v0.9", ldflags: "-s -w",
			programs: []string{
				"auth-service", "crd-replicator", "discovery", "liqo-controller-manager", "liqoctl", "liqonet", "metric-agent", "virtual-kubelet",
			},
			layered: layered09,
			single:  []string{"auth-service", "crd-replicator", "discovery", "liqo-controller-manager", "metric-agent", "virtual-kubelet"},
		},
		"1.2": {
			version: "v1.2.0", module: "test/lab/liqo/v1.2", patched: true,
			ldflags: "-s -w -X " + liqoModule + "/pkg/liqoctl/version.LiqoctlVersion=v1.2.0",
			programs: []string{
				"crd-replicator", "fabric", "gateway", "gateway/geneve", "gateway/wireguard", "ipam", "liqo-controller-manager", "liqoctl",
				"proxy", "uninstaller", "virtual-kubelet", "webhook",
			},
			single: []string{
				"crd-replicator", "fabric", "gateway", "gateway/geneve", "gateway/wireguard", "ipam", "liqo-controller-manager", "proxy",
				"uninstaller", "virtual-kubelet", "webhook",
			},
		},
	}
}

// findLiqo returns a line such as 0.9.
func findLiqo(line string) (liqoLine, error) {
	lines := liqoLines()
	l, ok := lines[line]
	if !ok {
		return liqoLine{}, fmt.Errorf("unknown line %q of Liqo: use one of %s", line, strings.Join(slices.Sorted(maps.Keys(lines)), ", "))
	}
	return l, nil
}

// layered09 are the images of Liqo 0.9 that run programs of the machine besides.
func layered09(base image.Layer, liqo, programs string) []image.Image {
	liqonet := onBase(base, liqoRegistry+"liqonet:v0.9.4", "/usr/bin/liqonet")
	liqonet.Layers = append(liqonet.Layers, image.Layer{{Path: "usr/bin/liqonet", Source: filepath.Join(liqo, "liqonet")}})
	return []image.Image{
		image.Single("k8s.gcr.io/ingress-nginx/kube-webhook-certgen:v1.1.1", filepath.Join(programs, "certgen"), "/kube-webhook-certgen"),
		onBase(base, liqoRegistry+"cert-creator:v0.9.4", "/usr/bin/openssl"), liqonet,
	}
}

// images returns what makes the line's images, of programs in a folder.
func (l liqoLine) images(liqo string) func(base image.Layer, programs string) []image.Image {
	return func(base image.Layer, programs string) []image.Image {
		var list []image.Image
		if l.layered != nil {
			list = l.layered(base, liqo, programs)
		}
		for _, name := range l.single {
			program := path.Base(name)
			list = append(list, image.Single(liqoRegistry+name+":"+l.version, filepath.Join(liqo, program), path.Join("/usr/bin", program)))
		}
		return list
	}
}

// liqo returns the folder with a line's programs and its chart.
func (b Builder) liqo(ctx context.Context, l liqoLine) (string, error) {
	t := target{name: "liqo-" + l.version, dir: l.module, ldflags: l.ldflags, inputs: []string{"go.mod", "go.sum"}}
	module := filepath.Join(b.Source, l.module)
	// Where a copy is made to be patched it is built by its own go.mod, which has what Liqo replaces.
	if l.patched {
		patches, err := filepath.Glob(filepath.Join(module, "patches", "*.patch"))
		if err != nil || len(patches) == 0 {
			return "", fmt.Errorf("find the patches for Liqo %s in %s: there is none (%w)", l.version, module, err)
		}
		for _, patch := range patches {
			t.inputs = append(t.inputs, filepath.Join("patches", filepath.Base(patch)))
		}
		t.source = func(ctx context.Context, scratch string) (string, error) {
			err := b.run(ctx, b.Source, "go", "run", "./build/patch", "-root", l.module, "-patches", "patches", "-out", scratch)
			return filepath.Join(scratch, filepath.FromSlash(liqoModule)), err
		}
	}
	for _, name := range l.programs {
		t.packages = append(t.packages, liqoModule+"/cmd/"+name)
	}
	t.finish = func(ctx context.Context, dir string) error {
		source, err := b.output(ctx, module, "go", "list", "-m", "-f", "{{.Dir}}", liqoModule)
		if err != nil {
			return err
		}
		return os.CopyFS(filepath.Join(dir, "chart"), os.DirFS(filepath.Join(source, "deployments", "liqo")))
	}
	return b.binaries(ctx, t)
}
