// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/install/bundle"
	"github.com/capacitorset/liqo-broker/pkg/install/diagnosis"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/guarded"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	// diagnosisTimeout is how long a diagnosis takes at most, and bundleTimeout an archive.
	diagnosisTimeout = 10 * time.Second
	bundleTimeout    = 2 * time.Minute
)

func (r *reading) diagnoseCommand() *cobra.Command {
	var out output
	var file string
	command := &cobra.Command{
		Use:   "diagnose",
		Short: "Look at each step of the set-up of a broker, a consumer or a provider, and say what to do",
		Long: "Look at each step of the set-up of this cluster, as a broker, a consumer or a provider: Liqo's version and flags, virtual " +
			"kubelets, the daemon,\nServices, certificates, peerings and tunnels; with Liqo 0.9, to whom namespace liqo is offered, and relay " +
			"addresses; with 1.x, what brokers grant,\nand gateways. Each is as it should be, a problem (!), a note (*), or cannot be known (?). " +
			"Nothing is written. With a problem, the\nexit code is 3.\n\n" +
			"With --bundle, an archive for a bug report is written too: objects, events and logs, without Secrets and what looks like one. " +
			"Look at it\nbefore you send it; MANIFEST.txt in it says what was left out.",
		Example:           "  kubectl liqo-broker diagnose\n  kubectl liqo-broker diagnose --bundle report.tar.gz",
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			d, err := r.diagnose(command.Context(), c)
			if err != nil {
				return r.clear(err)
			}
			if done, err := out.value(r.Out, d); err != nil {
				return err
			} else if !done {
				fmt.Fprint(r.Out, d.String())
			}
			// The archive has the diagnosis in it.
			if file != "" {
				if err := r.bundle(command.Context(), c, d, file); err != nil {
					return r.clear(err)
				}
				fmt.Fprintf(r.ErrOut, "Wrote %s. Look at it before you send it.\n", file)
			}
			if !d.Healthy {
				return errUnhealthy
			}
			return nil
		},
	}
	out.addFlags(command, formatJSON, formatYAML)
	command.Flags().StringVar(&file, "bundle", "", "write an archive for a bug report into this file (.tar.gz), which must not exist")
	return command
}

func (r *reading) diagnose(ctx context.Context, c client.Client) (*diagnosis.Diagnosis, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, diagnosisTimeout, fmt.Errorf("%s does not answer within %s", r.where(), diagnosisTimeout))
	defer cancel()
	asConnector, err := r.asConnector()
	if err != nil {
		return nil, err
	}
	return diagnosis.Run(ctx, diagnosis.Config{
		Client: c, Now: r.now(), Observe: observe, Plugin: version.String(), Kubernetes: r.kubernetes(ctx),
		Unguarded: func(ctx context.Context) (string, error) {
			err := guarded.New(asConnector, liqo.DefaultNamespace, clock.RealClock{}).Check(ctx)
			if errors.Is(err, peering.ErrUnguarded) {
				return err.Error(), nil
			}
			return "", err
		},
	})
}

// bundle writes an archive.
func (r *reading) bundle(ctx context.Context, c client.Client, d *diagnosis.Diagnosis, file string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bundleTimeout, fmt.Errorf("%s does not answer within %s", r.where(), bundleTimeout))
	defer cancel()
	return bundle.Write(ctx, file, bundle.Config{Client: c, Now: r.now(), Diagnosis: d, Logs: r.logs})
}

// core returns a client of the core API, for what is no object.
func (s *session) core() (rest.Interface, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// readLogs reads the end of the log of a container.
func (s *session) readLogs(ctx context.Context, pod client.ObjectKey, container string, previous bool, most int64) (io.ReadCloser, error) {
	core, err := s.core()
	if err != nil {
		return nil, err
	}
	return core.Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("log").
		VersionedParams(&corev1.PodLogOptions{Container: container, Previous: previous, LimitBytes: &most,
			TailLines: new(int64(bundle.MaxLines))}, clientgoscheme.ParameterCodec).Stream(ctx)
}

// serverVersion returns the version of Kubernetes; empty if it does not say it.
func (s *session) serverVersion(ctx context.Context) string {
	core, err := s.core()
	if err != nil {
		return ""
	}
	text, err := core.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return ""
	}
	var is struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return ""
	}
	return is.GitVersion
}
