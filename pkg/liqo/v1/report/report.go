// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report is what the agent of a consumer tells a broker with Liqo 1.x: which views it has installed, and how its own tunnels are.
//
// The report is text in a ConfigMap in the tenant namespace that the broker has for the consumer, where only that consumer writes it. So it
// is to be believed about nobody else, and whatever it says is hostile until it is parsed. The package does not know what follows from it.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

const (
	// Name is that of the ConfigMap.
	Name = "liqo-broker-report"
	// Key is where in it the report is.
	Key = "report"
	// MaxBytes is how long a report may be.
	MaxBytes = 64 << 10
	// MaxLinks is how many tunnels a report tells of.
	MaxLinks = 256

	// version is raised when older brokers must not believe a report; new fields do not raise it.
	version = 1
	// What an error tells of what somebody else wrote: of so many mistakes, and so many bytes of each.
	maxInvalid, maxShown = 5, 64
)

// Report is what an agent tells.
type Report struct {
	// Agent is the version of the program that tells it.
	Agent string
	// At is when it was told, by the consumer's clock.
	At time.Time
	// Views are the prefixes that the consumer acknowledges, as the broker has granted them, by their keys.
	Views map[string]netip.Prefix
	// Links are the consumer's own tunnels.
	Links []Link
}

// Link is a tunnel of a consumer.
type Link struct {
	// Cluster is where it leads.
	Cluster   cluster.ID
	Connected bool
	// RoundTrip is the time that a packet takes there and back, and At when that was measured; zero if it was not.
	RoundTrip time.Duration
	At        time.Time
}

// wire is a report as JSON.
type wire struct {
	Version int               `json:"version"`
	Agent   string            `json:"agent"`
	At      time.Time         `json:"at"`
	Views   map[string]string `json:"views"`
	Links   []wireLink        `json:"links"`
}

type wireLink struct {
	Cluster   string     `json:"cluster"`
	Connected bool       `json:"connected"`
	RoundTrip string     `json:"roundTrip,omitempty"`
	At        *time.Time `json:"at,omitempty"`
}

// Format returns the text of a report. Views and links that [Parse] would not take are an error, except that of more links than fit the
// last ones are left out.
func (r *Report) Format() (string, error) {
	w := wire{Version: version, Agent: r.Agent, At: r.At.UTC().Truncate(time.Second), Views: map[string]string{}, Links: []wireLink{}}
	for _, key := range slices.Sorted(maps.Keys(r.Views)) {
		if err := views.CheckKey(key); err != nil {
			return "", err
		}
		w.Views[key] = r.Views[key].String()
	}
	for _, l := range r.Links[:min(len(r.Links), MaxLinks)] {
		of := wireLink{Cluster: string(l.Cluster), Connected: l.Connected}
		if l.RoundTrip > 0 && !l.At.IsZero() {
			at := l.At.UTC().Truncate(time.Second)
			of.RoundTrip, of.At = l.RoundTrip.String(), &at
		}
		w.Links = append(w.Links, of)
	}
	for {
		text, err := json.Marshal(w)
		if err != nil {
			return "", fmt.Errorf("write the report: %w", err)
		}
		if len(text) <= MaxBytes {
			return string(text), nil
		}
		if len(w.Links) == 0 {
			return "", fmt.Errorf("the report has %d bytes, more than %d", len(text), MaxBytes)
		}
		w.Links = w.Links[:len(w.Links)/2]
	}
}

// Parse reads the text of a report. What of the views and links cannot be is left out, and the first of it named in the error; the rest is
// returned in any case. Where nothing can be believed, the report is the zero Report.
func Parse(text string) (Report, error) {
	if len(text) > MaxBytes {
		return Report{}, fmt.Errorf("the report has %d bytes, more than %d", len(text), MaxBytes)
	}
	var w struct {
		Version int                        `json:"version"`
		Agent   json.RawMessage            `json:"agent"`
		At      time.Time                  `json:"at"`
		Views   map[string]json.RawMessage `json:"views"`
		Links   []json.RawMessage          `json:"links"`
	}
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return Report{}, fmt.Errorf("read the report: %s", shown(err.Error()))
	}
	if w.Version != version {
		return Report{}, fmt.Errorf("the report has version %d: want %d", w.Version, version)
	}

	// What single parts say.
	var wrong mistakes
	r := Report{At: w.At, Views: map[string]netip.Prefix{}}
	if len(w.Agent) > 0 && json.Unmarshal(w.Agent, &r.Agent) == nil {
		r.Agent = excerpt.Of(r.Agent, maxShown)
	}
	for _, key := range slices.Sorted(maps.Keys(w.Views)) {
		switch prefix, err := parseView(key, w.Views[key]); {
		case err != nil:
			wrong.note(err)
		case len(r.Views) == views.MaxViews:
			wrong.note(fmt.Errorf("the report has more than %d views", views.MaxViews))
		default:
			r.Views[key] = prefix
		}
	}
	// Of each cluster the first one counts.
	told := map[cluster.ID]bool{}
	for i, raw := range w.Links {
		link, err := parseLink(raw)
		switch {
		case err != nil:
			wrong.note(fmt.Errorf("links[%d]: %w", i, err))
		case told[link.Cluster]:
			wrong.note(fmt.Errorf("links[%d]: cluster %s is there already", i, link.Cluster))
		case len(r.Links) == MaxLinks:
			wrong.note(fmt.Errorf("the report has more than %d links", MaxLinks))
		default:
			told[link.Cluster] = true
			r.Links = append(r.Links, link)
		}
	}
	return r, errors.Join(wrong...)
}

// parseView reads a view.
func parseView(key string, raw json.RawMessage) (netip.Prefix, error) {
	if err := views.CheckKey(key); err != nil {
		return netip.Prefix{}, err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return netip.Prefix{}, fmt.Errorf("view %s: %s", key, shown(err.Error()))
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("view %s is %q, which is not a prefix", key, shown(text))
	}
	if err := views.CheckPrefix(prefix.Masked()); err != nil {
		return netip.Prefix{}, fmt.Errorf("view %s: %w", key, err)
	}
	return prefix.Masked(), nil
}

// parseLink reads a link. A round-trip time that cannot be is none.
func parseLink(raw json.RawMessage) (Link, error) {
	var w struct {
		Cluster   string          `json:"cluster"`
		Connected bool            `json:"connected"`
		RoundTrip json.RawMessage `json:"roundTrip"`
		At        json.RawMessage `json:"at"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return Link{}, errors.New(shown(err.Error()))
	}
	if wrong := validation.IsDNS1123Label(w.Cluster); len(wrong) > 0 {
		return Link{}, fmt.Errorf("%q is not the ID of a cluster", shown(w.Cluster))
	}
	link := Link{Cluster: cluster.ID(w.Cluster), Connected: w.Connected}
	var text string
	var at time.Time
	timed := json.Unmarshal(w.RoundTrip, &text) == nil && json.Unmarshal(w.At, &at) == nil && !at.IsZero()
	if took, err := time.ParseDuration(text); timed && err == nil && took > 0 && link.Connected {
		link.RoundTrip, link.At = took, at
	}
	return link, nil
}

// mistakes are the first ones of what somebody else wrote.
type mistakes []error

func (m *mistakes) note(err error) {
	if len(*m) < maxInvalid {
		*m = append(*m, err)
	}
}

// shown returns the beginning of what somebody else wrote.
func shown(text string) string { return excerpt.Of(text, maxShown) }
