// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/capacitorset/liqo-broker/test/lab/kubernetes"
)

// longestAudit is what is read of a file of an audit log, in bytes; the API server begins another one before.
const longestAudit = 8 << 20

// A Write is that somebody has written an object of the project, or was refused that, as the audit log of an API server has it.
type Write struct {
	// Time is when the API server was asked.
	Time time.Time
	// User is who has asked, and As whom they have said that they act for; empty for nobody else.
	User, As             string
	Verb, Resource, Name string
	// Dry is whether it was only tried.
	Dry bool
	// Code is the status of HTTP with which it was answered.
	Code int
}

// Writes returns who has written which objects of the project on the cluster since a time, the first one first. Statuses and other parts
// of objects are not among it. A write is there a moment after it was answered, as long as no more than some thousand have come after it.
func (c *Cluster) Writes(since time.Time) ([]Write, error) {
	current := c.Lab.LogPath(kubernetes.AuditLog)
	files, err := filepath.Glob(strings.TrimSuffix(current, ".log") + "-*.log") // Their names have the time at which they were full.
	if err != nil {
		return nil, err
	}
	var all []Write
	for _, file := range append(files, current) {
		found, err := writesOf(file, since)
		if err != nil && (file == current || !errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("read the audit log of cluster %s, which a lab has that is brought up now: %w", c.Name, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func writesOf(file string, since time.Time) ([]Write, error) {
	log, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return writesIn(io.LimitReader(log, longestAudit), since)
}

func writesIn(log io.Reader, since time.Time) ([]Write, error) {
	var all []Write
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // The last line may not be whole yet.
		}
		var event auditv1.Event
		if err == nil {
			err = json.Unmarshal(line, &event)
		}
		if err != nil {
			return nil, err
		}
		of := event.ObjectRef
		if of == nil || of.Subresource != "" || event.RequestReceivedTimestamp.Time.Before(since) {
			continue
		}
		asked, err := url.Parse(event.RequestURI)
		if err != nil {
			return nil, err
		}
		write := Write{
			Time: event.RequestReceivedTimestamp.Time, User: event.User.Username, Verb: event.Verb, Resource: of.Resource, Name: of.Name,
			Dry: slices.Contains(asked.Query()["dryRun"], "All"),
		}
		if event.ImpersonatedUser != nil {
			write.As = event.ImpersonatedUser.Username
		}
		if event.ResponseStatus != nil {
			write.Code = int(event.ResponseStatus.Code)
		}
		all = append(all, write)
	}
}
