// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Where the project is, for who looks at an artifact.
const (
	project    = "liqo-broker"
	module     = "github.com/capacitorset/liqo-broker"
	repository = "https://" + module
	// imageRegistry is what stands before the last slash of the names of images in the manifests.
	imageRegistry = "capacitorset"
	licence       = "Apache-2.0"
	authors       = "The liqo-broker Authors"
)

// A source is what is released: a commit of this repository, under a name.
type source struct {
	// Root is the folder of the repository.
	Root string
	// Version is that of the release, with a v before it, or what `git describe` says of a build that is none.
	Version string
	// Revision is the commit.
	Revision string
	// Time is when the commit was made: all files of the release have it.
	Time time.Time
}

// semantic is a version as Go and Helm read it, without build metadata, which a tag of an image cannot have.
var semantic = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// check reports why a source cannot be released: its version is none, or its manifests name another one.
func (s source) check() error {
	if !semantic.MatchString(s.Version) {
		return fmt.Errorf("the version %q is not of the form v1.2.3", s.Version)
	}
	if s.Revision == "" || s.Time.IsZero() {
		return errors.New("the commit and its time are not given")
	}
	said, err := s.manifestVersion()
	if err != nil {
		return err
	}
	if said != s.Version {
		return fmt.Errorf("the manifests are those of %s: run `make set-version VERSION=%s`, and commit what it changes", said, s.Version)
	}
	return nil
}

// manifestVersion returns the version of the images that the chart names. A test of test/arch holds that all others name the same.
func (s source) manifestVersion() (string, error) {
	data, err := os.ReadFile(filepath.Join(s.Root, "deploy/chart/Chart.yaml"))
	if err != nil {
		return "", err
	}
	var chart struct {
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		return "", fmt.Errorf("read Chart.yaml: %w", err)
	}
	return chart.AppVersion, nil
}

// number returns the version without the v, as Helm names charts.
func (s source) number() string { return strings.TrimPrefix(s.Version, "v") }

// download returns where a file of the release can be had.
func (s source) download(file string) string {
	return repository + "/releases/download/" + s.Version + "/" + file
}
