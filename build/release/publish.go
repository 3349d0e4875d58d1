// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// publish pushes the images and the charts of a release to a registry, under the tags that they have. to is what stands before the last
// slash of their names, as ghcr.io/someone. Who may push is known as to docker: by `docker login`, `crane auth login` or a credential
// helper.
func publish(ctx context.Context, folder, to string, progress io.Writer, options ...name.Option) error {
	archives, err := filepath.Glob(filepath.Join(folder, "*"+archiveEnd))
	if err != nil {
		return err
	}
	if len(archives) == 0 {
		return fmt.Errorf("%s has no images: make release first", folder)
	}
	for _, archive := range archives {
		if err := publishOne(ctx, archive, to, progress, options); err != nil {
			return err
		}
	}
	return publishCharts(ctx, folder, to, progress, options)
}

func publishOne(ctx context.Context, archive, to string, progress io.Writer, options []name.Option) error {
	return eachTag(archive, to, options, func(tag name.Tag, images v1.ImageIndex, digest v1.Hash) error {
		if err := remote.WriteIndex(tag, images, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push %s: %w", tag, err)
		}
		fmt.Fprintf(progress, "release: pushed %s@%s\n", tag, digest)
		return nil
	})
}

// taggedDigests returns the digests of the images in an archive of a release, by the names that they have in a registry.
func taggedDigests(archive, to string) (map[string]v1.Hash, error) {
	digests := map[string]v1.Hash{}
	err := eachTag(archive, to, nil, func(tag name.Tag, _ v1.ImageIndex, digest v1.Hash) error {
		digests[to+"/"+path.Base(tag.RepositoryStr())+":"+tag.TagStr()] = digest
		return nil
	})
	return digests, err
}

// eachTag calls do with each image in an archive of a release, and the name that it has in a registry.
func eachTag(archive, to string, options []name.Option, do func(name.Tag, v1.ImageIndex, v1.Hash) error) error {
	folder, err := os.MkdirTemp("", "oci-layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	layout, err := unpackLayout(archive, folder)
	if err != nil {
		return err
	}
	index, err := layout.ImageIndex()
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	for _, descriptor := range manifest.Manifests {
		// The name without the registry is the last part of the one that the release has.
		ours, err := name.NewTag(descriptor.Annotations[containerdName])
		if err != nil {
			return fmt.Errorf("read %s: %w", archive, err)
		}
		tag, err := name.NewTag(to+"/"+path.Base(ours.RepositoryStr())+":"+ours.TagStr(), options...)
		if err != nil {
			return err
		}
		images, err := index.ImageIndex(descriptor.Digest)
		if err != nil {
			return fmt.Errorf("read %s: %w", archive, err)
		}
		if err := do(tag, images, descriptor.Digest); err != nil {
			return err
		}
	}
	return nil
}
