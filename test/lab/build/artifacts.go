// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/test/lab/cache"
	"github.com/capacitorset/liqo-broker/test/lab/image"
	"github.com/capacitorset/liqo-broker/test/lab/node"
)

// DefaultKubernetes is the Kubernetes line that a lab has unless told otherwise.
const DefaultKubernetes = "v1.34"

// kubernetesVersions are the lines that there is a module for, and their versions.
var kubernetesVersions = map[string]string{"v1.37": "v1.37.2", "v1.34": "v1.34.4", "v1.28": "v1.28.15"}

// kubernetesPrograms are the names under which the one Kubernetes binary is started.
var kubernetesPrograms = []string{
	"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet",
}

// Artifacts are folders of all that a lab runs.
type Artifacts struct {
	// Kubernetes has the programs of Kubernetes, and kubectl.
	Kubernetes string `json:"kubernetes"`
	// Liqo has Liqo's programs, among them liqoctl, and its Helm chart in the folder chart.
	Liqo string `json:"liqo"`
	// LiqoVersion is the version of Liqo, and the tag of its images.
	LiqoVersion string `json:"liqoVersion"`
	// Images is an image store.
	Images string `json:"images"`
}

// KubernetesVersion returns the full version of a line such as v1.34.
func KubernetesVersion(line string) (string, error) {
	version, ok := kubernetesVersions[line]
	if !ok {
		lines := slices.Sorted(maps.Keys(kubernetesVersions))
		return "", fmt.Errorf("unknown Kubernetes line %q: use one of %s", line, strings.Join(lines, ", "))
	}
	return version, nil
}

// All builds what the cache lacks for a lab with a line of Kubernetes and one of Liqo.
func (b Builder) All(ctx context.Context, kubernetesLine, liqoLine string) (Artifacts, error) {
	version, err := KubernetesVersion(kubernetesLine)
	if err != nil {
		return Artifacts{}, err
	}
	liqo, err := findLiqo(liqoLine)
	if err != nil {
		return Artifacts{}, err
	}
	a := Artifacts{LiqoVersion: liqo.version}
	if a.Kubernetes, err = b.kubernetes(ctx, kubernetesLine, version); err != nil {
		return Artifacts{}, err
	}
	if a.Liqo, err = b.liqo(ctx, liqo); err != nil {
		return Artifacts{}, err
	}
	coredns, err := b.binaries(ctx, target{
		name: "coredns", dir: "test/lab/coredns", packages: []string{"."}, ldflags: "-s -w", inputs: []string{"go.mod", "go.sum", "main.go"},
	})
	if err != nil {
		return Artifacts{}, err
	}
	programs, err := b.binaries(ctx, target{
		name: "programs", dir: "test/lab/programs", ldflags: "-s -w", packages: []string{"./certgen", "./pause", "./web"},
		inputs: []string{"certgen/main.go", "pause/main.go", "web/main.go", "../pki/pki.go"},
	})
	if err != nil {
		return Artifacts{}, err
	}
	if a.Images, err = b.images(ctx, liqo.images(a.Liqo), coredns, programs); err != nil {
		return Artifacts{}, err
	}
	return a, nil
}

func (b Builder) kubernetes(ctx context.Context, line, version string) (string, error) {
	number := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	const base, client = "k8s.io/component-base/version", "k8s.io/client-go/pkg/version"
	ldflags := fmt.Sprintf("-s -w -X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s -X %s.gitVersion=%s",
		base, version, base, number[0], base, number[1], client, version)
	return b.binaries(ctx, target{
		name: "kubernetes-" + line, dir: "test/lab/kubernetes/" + line, packages: []string{"."}, ldflags: ldflags,
		inputs: []string{"go.mod", "go.sum", "main.go"},
		finish: func(_ context.Context, dir string) error {
			for _, name := range kubernetesPrograms {
				if err := os.Symlink(line, filepath.Join(dir, name)); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// images returns a store with all images of a lab. Those of Liqo are on top of the base layer of the lab's if they are asked for with one.
func (b Builder) images(
	ctx context.Context, liqo func(base image.Layer, programs string) []image.Image, coredns, programs string,
) (string, error) {
	base, err := image.Rootfs()
	if err != nil {
		return "", err
	}
	versions, err := fileVersions(base)
	if err != nil {
		return "", fmt.Errorf("look at this machine's programs: %w", err)
	}
	all := append(images(base, coredns, programs), liqo(base, programs)...)
	for i := range all {
		all[i].Env = append(all[i].Env, node.OneProcessor)
	}
	// The names of the folders of binaries tell what is in them.
	list, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encode image list: %w", err)
	}
	return b.Cache.Get(ctx, cache.Key("images", list, versions), func(_ context.Context, dir string) error {
		b.Started("images")
		archive := filepath.Join(dir, "images.tar")
		return errors.Join(load(image.NewStore(dir), archive, all), os.Remove(archive))
	})
}

// load writes images to an archive and reads it into the store.
func load(store image.Store, path string, images []image.Image) error {
	archive, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make images: %w", err)
	}
	defer archive.Close()
	if err := image.WriteArchive(archive, runtime.GOARCH, images...); err != nil {
		return err
	}
	if _, err := archive.Seek(0, 0); err != nil {
		return fmt.Errorf("make images: %w", err)
	}
	_, err = store.Load(archive, "")
	return err
}

// images are the images of a lab but those of Liqo, on top of a base layer where they need more than one binary.
func images(base image.Layer, coredns, programs string) []image.Image {
	web := onBase(base, "lab.local/web:1", "/web")
	web.Layers = append(web.Layers, image.Layer{{Path: "web", Source: filepath.Join(programs, "web")}})
	return []image.Image{
		image.Single("lab.local/pause:1", filepath.Join(programs, "pause"), "/pause"),
		onBase(base, "lab.local/tools:1", "/usr/bin/sleep", "infinity"), web,
		image.Single("lab.local/coredns:1", filepath.Join(coredns, "coredns"), "/coredns"),
	}
}

func onBase(base image.Layer, tag string, command ...string) image.Image {
	return image.Image{Tag: tag, Layers: []image.Layer{base}, Entrypoint: command}
}

// fileVersions tells when one of the files that a layer copies changes.
func fileVersions(layer image.Layer) ([]byte, error) {
	var out strings.Builder
	for _, entry := range layer {
		if entry.Source == "" {
			continue
		}
		info, err := os.Stat(entry.Source)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(&out, entry.Source, info.Size(), info.ModTime().UnixNano(), info.Mode()&fs.ModePerm)
	}
	return []byte(out.String()), nil
}
