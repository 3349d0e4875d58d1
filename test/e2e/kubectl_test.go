// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestKubectl looks from the consumer into pods two hops away, with kubectl of the clusters' version.
func TestKubectl(t *testing.T) {
	const namespace = "kubectl"
	together(t, v1alpha1.ModeAggregated)
	deploy(t, namespace, federation.Shell, 1)
	pod := copies(t, namespace, 1)[0].Name

	t.Run("Logs", func(t *testing.T) {
		output, err := fed.Consumer.Kubectl(t.Context(), "logs", "--namespace="+namespace, pod)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(output, "\n"); first != "line 0" {
			t.Errorf("kubectl logs: got %.40q, want the pod's first line", output)
		}
	})
	t.Run("Follow", func(t *testing.T) {
		checkStream(t, "logs", "--namespace="+namespace, "--follow", "--tail=1", pod)
	})
	t.Run("Attach", func(t *testing.T) {
		checkStream(t, "attach", "--namespace="+namespace, pod)
	})
	t.Run("Exec", func(t *testing.T) {
		output, err := fed.Consumer.Kubectl(t.Context(), "exec", "--namespace="+namespace, pod, "--", "hostname")
		if err != nil {
			t.Fatal(err)
		}
		if output != pod {
			t.Errorf("kubectl exec hostname: got %q, want %q", output, pod)
		}
	})
	t.Run("ExecStdin", func(t *testing.T) {
		command := kubectl(t.Context(), "exec", "--namespace="+namespace, "--stdin", pod, "--", "cat")
		command.Stdin = strings.NewReader("to the pod and back")
		output, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(output); got != "to the pod and back" {
			t.Errorf("kubectl exec cat: got %q", got)
		}
	})
	t.Run("ExecStatus", func(t *testing.T) {
		needs(t, federation.ExitCodes)
		err := kubectl(t.Context(), "exec", "--namespace="+namespace, pod, "--", "sh", "-c", "exit 7").Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Errorf("kubectl exec of a program that exits with 7: got %v", err)
		}
	})
}

// TestPortForward fetches a page of a pod two hops away through kubectl port-forward.
func TestPortForward(t *testing.T) {
	const namespace = "port-forward"
	together(t, v1alpha1.ModeAggregated)
	deploy(t, namespace, federation.Web, 1)
	pod := copies(t, namespace, 1)[0].Name

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	line := readLine(t, kubectl(ctx, "port-forward", "--namespace="+namespace, "--address=127.0.0.1", "pod/"+pod, ":8080"))
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	if address == "" {
		t.Fatalf("kubectl port-forward printed %q", line)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), pod) {
		t.Errorf("the page does not have the pod's name: %s", body)
	}
}

// kubectl returns a command that runs kubectl on the consumer.
func kubectl(ctx context.Context, args ...string) *exec.Cmd {
	c := fed.Consumer.Lab
	return exec.CommandContext(ctx, c.KubectlPath(), append([]string{"--kubeconfig", c.KubeconfigPath()}, args...)...)
}

// checkStream fails unless a kubectl command that does not end prints two lines one after the other.
func checkStream(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if line := readLine(t, kubectl(ctx, args...), regexp.MustCompile(`^line \d+`), regexp.MustCompile(`^line \d+`)); line == "" {
		t.Errorf("kubectl %s printed nothing", strings.Join(args, " "))
	}
}

// readLine starts a command, and returns the line at which it has printed a match of each pattern in turn, or its first line. The
// command ends with its context.
func readLine(t *testing.T, command *exec.Cmd, patterns ...*regexp.Regexp) string {
	t.Helper()
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if len(patterns) > 0 && patterns[0].MatchString(lines.Text()) {
			patterns = patterns[1:]
		}
		if len(patterns) == 0 {
			return lines.Text()
		}
	}
	return ""
}
