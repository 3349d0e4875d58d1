// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Read returns the blocks of a page, which is a path in the repository, that a function runs; empty is the test that runs what no other
// does.
func Read(repository, page, in string) ([]Block, error) {
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		return nil, err
	}
	all, err := Commands(page, string(text))
	if err != nil {
		return nil, err
	}
	var blocks []Block
	for _, b := range all {
		if len(b.On) > 0 && b.In == in {
			blocks = append(blocks, b)
		}
	}
	return blocks, nil
}

// ReadInline returns the commands in the running text of a page, which is a path in the repository.
func ReadInline(repository, page string) ([]Block, error) {
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		return nil, err
	}
	return Inline(page, string(text))
}

// A Reader is somebody who does what a page says: block after block. It must not be used concurrently.
type Reader struct {
	// Blocks are those that are left.
	Blocks []Block
	// Inline are the commands in its running text.
	Inline []Block
	// Values are what words in capital letters stand for.
	Values map[string]string
	// Run runs the commands of a block, in which values stand, and returns what they print.
	Run func(ctx context.Context, b Block, script string) (string, error)
}

// Next runs the next block, which has a command that begins like this, and returns what it prints. That must have the shape of the sample
// in the page, if there is one.
func (r *Reader) Next(ctx context.Context, command string) (string, error) {
	b, err := r.take(command)
	if err != nil {
		return "", err
	}
	script, err := b.Fill(r.Values)
	if err != nil {
		return "", err
	}
	out, err := r.Run(ctx, b, script)
	if err != nil {
		return out, fmt.Errorf("%s, on %s: %w\n%s\n%s", b, strings.Join(b.On, ", "), err, b.Text, out)
	}
	if err := Shape(b.Prints, out); err != nil {
		return out, fmt.Errorf("%s prints otherwise than it says: %w", b, err)
	}
	return out, nil
}

// Instead passes over the next block of another reader, and runs the own next one in its place, which has the same commands for the same
// clusters: nobody does the same thing twice because two pages say it.
func (r *Reader) Instead(ctx context.Context, of *Reader, command string) (string, error) {
	b, err := of.take(command)
	if err != nil {
		return "", err
	}
	if len(r.Blocks) > 0 && (r.Blocks[0].Text != b.Text || !slices.Equal(r.Blocks[0].On, b.On)) {
		return "", fmt.Errorf("%s is not the same as %s, on %s:\n%swant\n%s", r.Blocks[0], b, strings.Join(b.On, ", "), r.Blocks[0].Text, b.Text)
	}
	return r.Next(ctx, command)
}

// Said runs the command in the running text that begins like this on a cluster, and returns what it prints.
func (r *Reader) Said(ctx context.Context, on, command string) (string, error) {
	b, script, err := r.inline(command)
	if err != nil {
		return "", err
	}
	b.On = []string{on}
	out, err := r.Run(ctx, b, script+"\n")
	if err != nil {
		return out, fmt.Errorf("%s, on %s: %w\n%s\n%s", b, on, err, b.Text, out)
	}
	return out, nil
}

// Command returns the command in the running text that begins like this, with values.
func (r *Reader) Command(command string) (string, error) {
	_, script, err := r.inline(command)
	return script, err
}

func (r *Reader) inline(command string) (b Block, script string, err error) {
	for _, candidate := range r.Inline {
		switch {
		case !strings.HasPrefix(candidate.Text, command), candidate.Text == b.Text:
		case b.Text != "":
			return b, "", fmt.Errorf("%s and %s have a command that begins with %q", b, candidate, command)
		default:
			b = candidate
		}
	}
	if b.Text == "" {
		return b, "", fmt.Errorf("the running text has no command that begins with %q", command)
	}
	script, err = b.Fill(r.Values)
	return b, script, err
}

// Skip passes over blocks that have commands which begin like these, in this order.
func (r *Reader) Skip(commands ...string) error {
	for _, command := range commands {
		if _, err := r.take(command); err != nil {
			return err
		}
	}
	return nil
}

// take returns the next block, which is one of those that are left no more.
func (r *Reader) take(command string) (Block, error) {
	if len(r.Blocks) == 0 {
		return Block{}, fmt.Errorf("the page has no further block, %q was to come", command)
	}
	b := r.Blocks[0]
	if !strings.Contains("\n"+b.Text, "\n"+command) {
		return Block{}, fmt.Errorf("%s: nobody knows of this block; %q was to come:\n%s", b, command, b.Text)
	}
	r.Blocks = r.Blocks[1:]
	return b, nil
}

// End returns an error if blocks are left.
func (r *Reader) End() error {
	var errs []error
	for _, b := range r.Blocks {
		errs = append(errs, fmt.Errorf("%s: nobody has run this:\n%s", b, b.Text))
	}
	return errors.Join(errs...)
}
