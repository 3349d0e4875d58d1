// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/uiserver"
)

// Why no browser is opened.
var (
	errNoBrowser = errors.New("this machine has no desktop: open the link yourself")
	errConfined  = errors.New("the browser is a snap, which sees no file that others cannot read: open the link yourself")
)

// browse opens a link in the browser of the person, and returns when the link is of no use any more. The link is in a file that others
// cannot read, since all users of a machine see the arguments of its programs.
func browse(ctx context.Context, link string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, uiserver.CodeLife)
	defer cancel()
	opener, err := openerOf(ctx, runtime.GOOS, os.Getenv)
	if err != nil {
		return err
	}
	file, err := leading(link)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(file))) }()
	if out, err := exec.CommandContext(ctx, opener[0], append(opener[1:], file)...).CombinedOutput(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w: %.200s", opener[0], err, out)
	}
	<-ctx.Done() // The browser may read the file later than its opener ends.
	return nil
}

// openerOf returns the command that opens a file in the browser of the person.
func openerOf(ctx context.Context, system string, env func(string) string) ([]string, error) {
	switch system {
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}, nil
	case "darwin":
		return []string{"open"}, nil
	}
	if env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "" {
		return nil, errNoBrowser
	}
	timed, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if name, err := exec.CommandContext(timed, "xdg-settings", "get", "default-web-browser").Output(); err == nil && confined(string(name)) {
		return nil, errConfined
	}
	return []string{"xdg-open"}, nil
}

// confined reports whether a browser is a snap, by the name of its file of the desktop: SNAP_APPLICATION. Snaps see no hidden files, and a
// folder for temporary files of their own.
func confined(desktop string) bool {
	of := regexp.MustCompile(`^([a-z0-9-]+)_[a-z0-9-]+\.desktop$`)
	return of.MatchString(strings.TrimSpace(desktop))
}

// leading writes a file, alone in a folder, that leads a browser to a link. Nobody else can read it.
func leading(link string) (string, error) {
	folder, err := os.MkdirTemp("", "liqo-broker-ui-")
	if err != nil {
		return "", fmt.Errorf("write the link: %w", err)
	}
	file := filepath.Join(folder, "open.html")
	text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>liqo-broker</title>` +
		`<meta http-equiv="refresh" content="0;url=` + html.EscapeString(link) + `">`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", errors.Join(fmt.Errorf("write the link: %w", err), os.RemoveAll(folder))
	}
	return file, nil
}
