// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// done stands in the output after that of a script.
const done = "--- done ---"

// Shell is one bash that runs the blocks of a page one after the other, so that each finds the variables, the files and the programs in the
// background of those before it. It ends with the first command that fails. It must not be used concurrently.
type Shell struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	scripts string
}

// NewShell starts a shell in a folder, with more variables in its environment. It keeps the scripts in another folder, which must exist.
// Who starts it closes it.
func NewShell(ctx context.Context, folder, scripts string, environment ...string) (*Shell, error) {
	s := &Shell{command: exec.CommandContext(ctx, "bash", "--noprofile", "--norc"), scripts: scripts}
	s.command.Dir = folder
	s.command.Env = append(os.Environ(), environment...)
	// What it leaves in the background ends with it.
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.command.Cancel = func() error { return syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL) }
	in, err := s.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewReader(out)
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	return s, nil
}

// Run runs a script with a variable set, and returns all that it prints. An error says that a command of it has failed; the shell is
// good for nothing after that.
func (s *Shell) Run(name, value, script string) (string, error) {
	file, err := os.CreateTemp(s.scripts, "block-*.sh")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(script)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	// A background program of a block that failed would keep the output open.
	const call = "trap 'kill $(jobs -p) 2>/dev/null' EXIT; export %s=%q; set -euo pipefail; . %q </dev/null 2>&1; echo; echo '%s'\n"
	if _, err := fmt.Fprintf(s.in, call, name, value, file.Name(), done); err != nil {
		return "", err
	}
	var output strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if line == done+"\n" {
			return strings.TrimSuffix(output.String(), "\n"), nil
		}
		output.WriteString(line)
		if err != nil {
			return output.String(), errors.Join(errors.New("a command failed"), s.command.Wait())
		}
	}
}

// Close ends the shell, and what it has left in the background.
func (s *Shell) Close() error {
	err := syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
	_ = s.in.Close()
	_ = s.command.Wait() // It was killed, or has been waited for.
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
