// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/pages"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

const (
	gpu     = "nvidia.com/gpu"
	product = "nvidia.com/gpu.product"
)

// acceleratorMarket is a cluster that has seen three sellers of GPUs, at prices for a plan with two, and one that has none and is cheaper.
func acceleratorMarket(t *testing.T) []client.Object {
	t.Helper()
	page := pages.Page{}
	for name, of := range map[string]struct{ price, product string }{
		"milan": {"0.9", "NVIDIA-L4"}, "rome": {"0.6", "NVIDIA-L4"}, "paris": {"0.3", "NVIDIA-T4"}, "athens": {"0.1", ""},
	} {
		seller := somebody(t, name)
		page.Parties = append(page.Parties, announced(t, seller, name))
		page.Offers = append(page.Offers, sells(t, seller, of.price, func(o *offer.Offer) {
			if of.product != "" {
				two, err := offer.ParseQuantity("2")
				if err != nil {
					t.Fatal(err)
				}
				o.Labels = map[string]string{product: of.product, "nvidia.com/gpu.memory": "23034"}
				o.Plans[0].Resources[gpu] = two
			}
		}))
	}
	data, err := pages.Encode(page)
	if err != nil {
		t.Fatal(err)
	}
	registry := &connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	return []client.Object{registry, &connectorv1alpha1.CatalogPage{ObjectMeta: metav1.ObjectMeta{Name: "eu-00"}, Registry: "eu", Data: data}}
}

// TestAccelerators looks for GPUs, by their number and by what they are, and buys one: only who has them is shown, the cheapest first.
func TestAccelerators(t *testing.T) {
	cli := newCLI(t, acceleratorMarket(t)...)
	sellers := func(args ...string) (names []string, text string) {
		t.Helper()
		out, _, err := cli.runArgs(t, append([]string{"offers", "--no-headers", "-o", "wide"}, args...))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			names = append(names, strings.Fields(line)[0])
		}
		return names, out
	}
	if got, text := sellers("--resource", gpu+"=1"); strings.Join(got, " ") != "paris rome milan" ||
		!strings.Contains(text, ", 2 nvidia.com/gpu ") {
		t.Errorf("with a GPU there are %v\n%s", got, text)
	}
	got, _ := sellers("--resource", gpu+"=1", "--filter", `offer.labels["`+product+`"] == "NVIDIA-L4"`)
	if strings.Join(got, " ") != "rome milan" {
		t.Errorf("with an L4 there are %v", got)
	}
	const memory = `"nvidia.com/gpu.memory" in offer.labels && int(offer.labels["nvidia.com/gpu.memory"]) >= 16000`
	if got, _ := sellers("--filter", memory); len(got) != 3 {
		t.Errorf("with 16 GB of memory there are %v", got)
	}
	out, _, err := cli.runArgs(t, strings.Fields("buy --name train --cpu 1 --memory 1Gi --pods 1 --for 24h --resource "+gpu+"=1"))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var request connectorv1alpha1.CapacityRequest
	if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "train"}, &request); err != nil ||
		request.Spec.Resources[gpu] != resource.MustParse("1") {
		t.Errorf("requested %v, %v", request.Spec.Resources, err)
	}
	for flag, want := range map[string]string{
		"gpu=1": "not the name of a resource", gpu + "=0": "not positive", gpu + "=500m": "not a whole number", "cpu=1": "--cpu",
		gpu:           "key=value",
		gpu + "=many": "--resource",
	} {
		if _, _, err := cli.run(t, "offers --resource "+flag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--resource %s: %v, want an error that says %q", flag, err, want)
		}
	}

	trades := newCLI(t, market(t)...)
	if _, _, err := trades.run(t, "contracts resize nightly --resource "+gpu+"=2"); err != nil {
		t.Fatal(err)
	}
	var purchase connectorv1alpha1.Purchase
	if err := trades.client.Get(t.Context(), client.ObjectKey{Name: "nightly"}, &purchase); err != nil ||
		purchase.Spec.Resources[gpu] != resource.MustParse("2") {
		t.Errorf("asked for %v, %v", purchase.Spec.Resources, err)
	}
}
