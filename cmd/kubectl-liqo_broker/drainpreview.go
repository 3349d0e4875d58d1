// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// printDrain prints what would become of the pods on a provider that is drained. Who may not see that learns why, and has lost nothing: the
// dry run itself was good.
func (r *reading) printDrain(ctx context.Context, c client.Client, provider cluster.ID, out *output) error {
	preview, err := r.previewDrain(ctx, c, provider)
	if err != nil && out.isText() {
		fmt.Fprintf(r.ErrOut, "Which pods would move cannot be said: %v\n", r.clear(err))
		return nil
	}
	if err != nil {
		return err
	}
	if done, err := out.value(r.Out, preview); done || err != nil {
		return err
	}
	fmt.Fprintln(r.Out, sheet.Plain(preview.Message))
	if len(preview.Pods) == 0 {
		return nil
	}
	if err := out.table(r.Out, sheet.Table(preview.Pods, drainColumns())); err != nil {
		return err
	}
	if preview.More > 0 {
		fmt.Fprintf(r.Out, "and %d more\n", preview.More)
	}
	return nil
}

// previewDrain asks the broker's own planner, with what the cluster says at this moment.
func (r *reading) previewDrain(ctx context.Context, c client.Client, provider cluster.ID) (apiv1.DrainPreview, error) {
	of, err := lineOf(c)
	if err != nil {
		return apiv1.DrainPreview{}, err
	}
	own, err := of.OwnIdentity(ctx, c, liqo.DefaultNamespace)
	if err != nil {
		return apiv1.DrainPreview{}, err
	}
	// With Liqo 1.x, consumers tell which providers they reach.
	objects := snapshot.Once(c, of)
	heard := map[cluster.ID]grant.Heard{}
	if !of.HasPlugin() {
		consumers, err := r.consumers(ctx, c)
		if err != nil {
			return apiv1.DrainPreview{}, err
		}
		if heard, err = reports.Uncached(ctx, c, own.ID, r.now(), consumers.Items); err != nil {
			return apiv1.DrainPreview{}, err
		}
	}
	views := func(consumer cluster.ID) grant.Views { return heard[consumer].Views }
	explainer := &planning.Explainer{
		Client: objects, Reader: snapshot.New(of, objects, own.ID, nil),
		Planner: planning.NewPlanner(&record.FakeRecorder{}, clock.RealClock{}, views),
	}
	preview, found, err := explainer.PreviewDrain(ctx, provider, v1alpha1.SchedulingDrained)
	if err == nil && !found {
		err = errors.New("the provider is gone")
	}
	return preview, err
}

// drainColumns are those of the pods of a preview.
func drainColumns() []sheet.Column[apiv1.DrainedPod] {
	return []sheet.Column[apiv1.DrainedPod]{
		{Name: "Consumer", Cell: func(p *apiv1.DrainedPod) string { return cmp.Or(p.Consumer.Name, p.Consumer.ID) }},
		{Name: "Namespace", Cell: func(p *apiv1.DrainedPod) string { return p.Namespace }},
		{Name: "Pod", Cell: func(p *apiv1.DrainedPod) string { return p.Pod }},
		{Name: "Verdict", Cell: func(p *apiv1.DrainedPod) string { return p.Verdict }},
		{Name: "Where to", Cell: whereTo},
		{Name: "Why", Long: true, Cell: func(p *apiv1.DrainedPod) string { return p.Why }},
	}
}

// whereTo names the providers that have room for a pod.
func whereTo(p *apiv1.DrainedPod) string {
	var names []string
	for _, c := range p.Candidates {
		names = append(names, cmp.Or(c.Name, c.ID))
	}
	text := strings.Join(names, ", ")
	if p.MoreCandidates > 0 {
		text += fmt.Sprintf(", and %d more", p.MoreCandidates)
	}
	return text
}
