// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// part is a program, and its version.
type part struct {
	Name string `json:"name"`
	// Version is the tag of the image; empty if it has a digest instead, or if nobody may see it.
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
	// ours is whether it should have the version of our other programs.
	ours bool
}

// ourImages is how the names of our images begin, after their registry.
const ourImages = "liqo-broker"

func (r *reading) versionCommand() *cobra.Command {
	var out output
	var only bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Show which versions this plugin has, and what runs on the cluster",
		Long: "Show which versions this plugin has, and what runs on the cluster: Kubernetes, Liqo, the daemon, the sidecars in Liqo's network " +
			"manager,\nvirtual kubelets, the guard and the connector; with Liqo 1.x, the transit and the agent in place of sidecars and virtual\n" +
			"kubelets. With images of several versions, or of another than this plugin installs, the exit code is 3.",
		Example:           "  kubectl liqo-broker version\n  kubectl liqo-broker version --client -o json",
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			// What runs, which may be of several versions.
			parts := []part{{Name: "plugin", Version: version.String()}}
			var tags []string
			if !only {
				c, err := r.open()
				if err != nil {
					return err
				}
				here, err := r.parts(command.Context(), c)
				if err != nil {
					return r.clear(err)
				}
				if tags, err = differ(c, here); err != nil {
					return err
				}
				parts = append(parts, here...)
			}
			// For programs, or for people, who are told what differs.
			if done, err := out.value(r.Out, parts); err != nil {
				return err
			} else if !done {
				table := sheet.Table(parts, []sheet.Column[part]{
					{Name: "Part", Cell: func(p *part) string { return p.Name }},
					{Name: "Version", Cell: func(p *part) string { return cmp.Or(p.Version, "unknown") }},
					{Name: "Image", Cell: func(p *part) string { return p.Image }},
				})
				if err := out.table(r.Out, table); err != nil {
					return err
				}
			}
			if len(tags) > 1 {
				fmt.Fprintf(r.ErrOut, "There are several versions: %s. Bring all to that of the broker: %s\n", strings.Join(tags, ", "),
					version.Document("docs/compatibility.md"))
				return errUnhealthy
			}
			return nil
		},
	}
	out.addFlags(command, formatJSON, formatYAML)
	command.Flags().BoolVar(&only, "client", false, "only the version of this plugin, without asking a cluster")
	return command
}

// differ returns the versions of our programs on a cluster, with that which this plugin would install if there are any.
func differ(c client.Client, parts []part) ([]string, error) {
	installer, err := install.New(c, install.Options{}, io.Discard)
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, p := range parts {
		if p.ours && p.Version != "" {
			tags = append(tags, p.Version)
		}
	}
	if len(tags) > 0 {
		tags = append(tags, installer.Tag())
	}
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

// parts returns what runs on a cluster. What is not there is left out, and what nobody may see is without a version.
func (r *reading) parts(ctx context.Context, c client.Client) ([]part, error) {
	var all []part
	if is := r.kubernetes(ctx); is != "" {
		all = append(all, part{Name: "Kubernetes", Version: is})
	}
	type deployment struct{ name, namespace, of string }
	of, err := lineOf(c)
	liqo1 := err == nil && !of.HasPlugin() // Without a Liqo, what is left of one is shown.
	beside := []deployment{{"sidecar", liqo.DefaultNamespace, "liqo-network-manager"}}
	if liqo1 {
		beside = []deployment{{"transit", install.TransitName, install.TransitName}, {"agent", install.AgentName, install.AgentName}}
	}
	for _, deployment := range slices.Concat([]deployment{
		{"Liqo", liqo.DefaultNamespace, "liqo-controller-manager"},
		{"daemon", install.BrokerNamespace, install.BrokerName},
	}, beside, []deployment{
		{"guard", install.GuardName, install.GuardName},
		{"connector", install.ConnectorName, install.ConnectorName},
	}) {
		var d appsv1.Deployment
		err := c.Get(ctx, client.ObjectKey{Namespace: deployment.namespace, Name: deployment.of}, &d)
		switch {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			all = append(all, part{Name: deployment.name})
		case err != nil:
			return nil, fmt.Errorf("get deployment %s/%s: %w", deployment.namespace, deployment.of, err)
		default:
			all = append(all, partsOf(deployment.name, &d)...)
		}
	}

	if liqo1 {
		return all, nil // Its virtual kubelets are its own.
	}

	// Each virtual node has a virtual kubelet, which may be Liqo's own.
	var nodes v09.VirtualNodeList
	err = c.List(ctx, &nodes)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
		return nil, listed("virtual nodes", err)
	}
	for i := range nodes.Items {
		if _, spec := v09.KubeletDeployment(&nodes.Items[i]); spec != nil {
			for _, container := range spec.Template.Spec.Containers {
				all = append(all, partOf("virtual kubelet "+nodes.Items[i].Name, &container))
			}
		}
	}
	return all, nil
}

// partsOf returns the programs of a Deployment. Beside the first one those of ours count, which Liqo's Deployments have as sidecars.
func partsOf(name string, d *appsv1.Deployment) []part {
	var all []part
	for i := range d.Spec.Template.Spec.Containers {
		container := &d.Spec.Template.Spec.Containers[i]
		p := partOf(name, container)
		if name == "sidecar" {
			p.Name += " " + container.Name
		}
		if p.ours && name != "Liqo" || i == 0 && name != "sidecar" {
			all = append(all, p)
		}
	}
	return all
}

// partOf returns the program of a container.
func partOf(name string, container *corev1.Container) part {
	image := container.Image
	return part{Name: name, Version: install.ImageTag(image), Image: image, ours: strings.HasPrefix(path.Base(image), ourImages)}
}
