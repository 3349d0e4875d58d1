// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

const (
	// bought is the namespace of the workload that runs on what was bought, and patience how long a part of the story may take.
	bought   = "bought"
	patience = 3 * time.Minute
)

// story is that of a consumer that finds, buys, uses and gives back capacity of clusters that it does not know.
type story struct {
	f        *federation.Federation
	registry *federation.Registry
	request  *connectorv1alpha1.CapacityRequest
	// address is that of the workload's Service.
	address string
	rows    [][]string
}

// trade tells the story, and prints a table of what was seen.
func trade(ctx context.Context, f *federation.Federation, progress *federation.Progress, out io.Writer) error {
	if f.Peered() {
		return errors.New("the lab that is up has clusters that are peered: bin/lab down removes it")
	}
	registry, err := f.InstallMarket(ctx, progress)
	if err != nil {
		return err
	}
	s := &story{f: f, registry: registry}
	defer func() { s.registry.Kill() }()
	for _, part := range []struct {
		name string
		do   func(context.Context) (string, error)
	}{
		{"provider-a and provider-b offer CPUs, the consumer sees them", s.offers},
		{"the consumer requests half a CPU for at most 0.15 EUR/h", s.buys},
		{"it has a node of exactly that size", s.node},
		{"a workload runs there, and answers", s.runs},
		{"the registry is killed, and the workload answers", s.killed},
		{"the request is deleted: all is gone", s.ends},
	} {
		seen, began := "", time.Now()
		err := progress.Step(ctx, part.name, func(ctx context.Context) (err error) {
			seen, err = part.do(ctx)
			return err
		})
		if err != nil {
			return errors.Join(err, s.print(out))
		}
		s.rows = append(s.rows, []string{part.name, seen, fmt.Sprintf("%.1f s", time.Since(began).Seconds())})
	}
	return s.print(out)
}

// print writes the table.
func (s *story) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\nWHAT\tSEEN\tTOOK")
	for _, row := range s.rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

func (s *story) offers(ctx context.Context) (string, error) {
	prices := map[*federation.Cluster]string{s.f.ProviderA: "0.20", s.f.ProviderB: "0.10"}
	if err := s.f.Publish(ctx, prices); err != nil {
		return "", err
	}
	err := federation.Until(ctx, patience, func(ctx context.Context) error { return s.f.Published(ctx, s.f.Providers()...) })
	return "2 offers, for 0.20 and 0.10 EUR/h", err
}

func (s *story) buys(ctx context.Context) (string, error) {
	s.request = &connectorv1alpha1.CapacityRequest{
		ObjectMeta: metav1.ObjectMeta{Name: bought},
		Spec: connectorv1alpha1.CapacityRequestSpec{
			Resources: federation.Sold("500m"), Duration: metav1.Duration{Duration: time.Hour}, Regions: []string{"eu-north"},
			MaxPrice: &connectorv1alpha1.Price{Amount: "0.15", Currency: "EUR", Period: "PT1H"},
		},
	}
	if err := s.f.Consumer.Create(ctx, s.request); err != nil {
		return "", err
	}
	err := federation.Until(ctx, patience, func(ctx context.Context) error {
		return s.f.Consumer.Is(ctx, &connectorv1alpha1.CapacityRequest{}, bought, connectorv1alpha1.ConditionReady,
			connectorv1alpha1.ReasonActive)
	})
	if err != nil {
		return "", err
	}
	var purchases connectorv1alpha1.PurchaseList
	if err := s.f.Consumer.List(ctx, &purchases); err != nil {
		return "", err
	}
	if len(purchases.Items) != 1 {
		return "", fmt.Errorf("the consumer has %d purchases", len(purchases.Items))
	}
	p := purchases.Items[0].Status
	return fmt.Sprintf("a contract with %s for %s %s, until %s", p.Seller.Name, p.Price.Amount, p.Price.Currency,
		p.EndTime.UTC().Format("15:04 MST")), nil
}

func (s *story) node(ctx context.Context) (string, error) {
	err := federation.Until(ctx, patience, func(ctx context.Context) error {
		return s.f.Consumer.HasBought(ctx, s.f.ProviderB, federation.Sold("500m"))
	})
	if err != nil {
		return "", err
	}
	node, err := s.f.Consumer.VirtualNode(ctx, s.f.ProviderB)
	if err != nil {
		return "", err
	}
	has := node.Status.Allocatable
	return fmt.Sprintf("node %s: %s CPU, %s memory, %s pods", node.Name, has.Cpu(), has.Memory(), has.Pods()), nil
}

func (s *story) runs(ctx context.Context) (seen string, err error) {
	if err := s.f.DeployTo(ctx, bought, s.f.ProviderB, 1); err != nil {
		return "", err
	}
	if s.address, err = s.f.Service(ctx, bought, federation.Web); err != nil {
		return "", err
	}
	return s.answers(ctx)
}

// answers asks the workload who it is.
func (s *story) answers(ctx context.Context) (seen string, err error) {
	var host string
	err = federation.Until(ctx, patience, func(ctx context.Context) (err error) {
		host, err = s.f.Host(ctx, s.address)
		return err
	})
	return "pod " + strings.TrimSpace(host), err
}

func (s *story) killed(ctx context.Context) (string, error) {
	s.registry.Kill()
	err := federation.Until(ctx, patience, func(ctx context.Context) error {
		return s.f.Consumer.Is(ctx, &connectorv1alpha1.Registry{}, federation.RegistryName,
			connectorv1alpha1.ConditionFollowing, connectorv1alpha1.ReasonUnreachable)
	})
	if err != nil {
		return "", err
	}
	return s.answers(ctx)
}

func (s *story) ends(ctx context.Context) (string, error) {
	if err := s.f.Consumer.Delete(ctx, s.request); err != nil {
		return "", err
	}
	err := federation.Until(ctx, patience, func(ctx context.Context) error {
		return errors.Join(s.f.Consumer.HasParted(ctx, s.f.ProviderB), s.f.Consumer.BuysNothing(ctx))
	})
	if err != nil {
		return "", err
	}
	return "no node, no peering, nothing held", s.f.Remove(ctx, bought)
}
