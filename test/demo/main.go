// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Demo shows on this machine what the project does, on a lab that it brings up and leaves up.
//
// `demo up` takes the steps of the README to a federation with a working broker, runs a web server on it, and shows where its pods are.
// Steps that were taken before change nothing. `demo trade` has clusters that do not know each other find, buy, use and give back capacity.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/capacitorset/liqo-broker/test/federation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "demo:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	what := "up"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		what, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("demo "+what, flag.ContinueOnError)
	kubernetes := flags.String("kubernetes", "v1.34", "line of Kubernetes of the clusters: v1.37, v1.34 or v1.28")
	liqo := flags.String("liqo", "0.9", "line of Liqo: 0.9 or 1.2")
	root := flags.String("root", ".", "folder of the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	progress := federation.NewProgress(out)
	switch what {
	case "up":
		f, err := clusters(ctx, lab{*root, *kubernetes, *liqo, "overlapping"}, "four clusters with Liqo (bin/lab up)", progress, out)
		if err != nil {
			return err
		}
		return federate(ctx, f, progress, out)
	case "trade":
		f, err := clusters(ctx, lab{*root, *kubernetes, *liqo, "strangers"}, "four clusters with Liqo that do not know each other (bin/lab up)",
			progress, out)
		if err != nil {
			return err
		}
		return trade(ctx, f, progress, out)
	}
	return fmt.Errorf("there is no demo %q: up or trade", what)
}

// lab is which clusters are wanted: the folder of the repository, and what lab up is told.
type lab struct{ root, kubernetes, liqo, topology string }

// clusters brings the clusters up unless they are, and connects to them.
func clusters(
	ctx context.Context, wanted lab, step string, progress *federation.Progress, out io.Writer,
) (*federation.Federation, error) {
	if err := progress.Step(ctx, step, func(ctx context.Context) error { return wanted.up(ctx, out) }); err != nil {
		return nil, err
	}
	return federation.Connect(ctx, wanted.root)
}

// federate makes a federation with a broker of clusters, and shows it.
func federate(ctx context.Context, f *federation.Federation, progress *federation.Progress, out io.Writer) error {
	if err := f.Install(ctx, progress); err != nil {
		return err
	}
	workload := fmt.Sprintf("consumer: run a web server with %d replicas in namespace %s, offloaded to the broker",
		federation.DemoReplicas, federation.DemoNamespace)
	err := progress.Step(ctx, workload, func(ctx context.Context) error {
		return f.Deploy(ctx, federation.DemoNamespace, federation.Web, federation.DemoReplicas)
	})
	if err != nil {
		return err
	}
	if err := f.Report(ctx, out, federation.DemoNamespace); err != nil {
		return err
	}
	api, err := f.APIAddress(ctx)
	if err != nil {
		return err
	}
	return lookAround(out, f, api, progress)
}

// up brings the clusters up unless they are.
func (l lab) up(ctx context.Context, out io.Writer) error {
	program := filepath.Join(l.root, "bin", "lab")
	if exec.CommandContext(ctx, program, "status").Run() == nil {
		return nil
	}
	up := exec.CommandContext(ctx, program, "up", "--kubernetes", l.kubernetes, "--liqo", l.liqo, "--topology", l.topology,
		"--without-peerings")
	up.Stdout, up.Stderr = out, out
	return up.Run()
}

// lookAround tells what a person can do with the federation.
func lookAround(out io.Writer, f *federation.Federation, api string, progress *federation.Progress) error {
	_, err := fmt.Fprintf(out, `
Look around

  # kubectl of the clusters' version, on the consumer; bin/lab kubeconfig CLUSTER prints those of the others
  export PATH=%[1]s:$PATH
  export KUBECONFIG=%[2]s
  kubectl get pods -n %[5]s -o wide

  # the broker's HTTP API, as somebody who may use it (deploy/examples/api-operator.yaml)
  onbroker="kubectl --kubeconfig %[7]s -n liqo-broker"
  token=$($onbroker create token liqo-broker-operator --audience liqo-broker)
  ca=$($onbroker get configmap liqo-broker-api-ca -o jsonpath='{.data.ca\.crt}')
  kubectl exec tools -- sh -c 'echo "$0" >/tmp/ca.crt' "$ca"
  api() { kubectl exec tools -- curl -s --cacert /tmp/ca.crt --connect-to ::%[3]s -H "Authorization: Bearer $token" "https://%[8]s$1"; }
  api /api/clusters

  # move all pods to provider-b, and show the table again
  api '/api/toggle?id=%[4]s&enable=false'
  bin/demo

  # remove everything
  make demo-down

Done in %.0[6]f s. The federation stays up.
`, filepath.Dir(f.Consumer.Lab.KubectlPath()), f.Consumer.Lab.KubeconfigPath(), api, f.ProviderA.ID, federation.DemoNamespace, progress.Elapsed().Seconds(),
		f.Broker.Lab.KubeconfigPath(), federation.APIName)
	return err
}
