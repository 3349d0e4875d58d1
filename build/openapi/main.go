// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapi writes the OpenAPI documents of all HTTP APIs into a folder, with one of the types by which the plugin's page trades, and
// that of the broker's API once more in version 3.0 of OpenAPI, from which a client is generated. It does not know what is in them.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/server"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: openapi FOLDER FILE-IN-3.0")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(folder, older string) error {
	broker, in30, err := httpapi.OpenAPI()
	if err != nil {
		return err
	}
	registry, err := server.OpenAPI()
	if err != nil {
		return err
	}
	negotiated, err := negotiation.OpenAPI()
	if err != nil {
		return err
	}
	page, err := pageTypes()
	if err != nil {
		return err
	}
	for file, document := range map[string][]byte{
		filepath.Join(folder, "openapi.yaml"):     broker,
		filepath.Join(folder, "registry.yaml"):    registry,
		filepath.Join(folder, "negotiation.yaml"): negotiated,
		filepath.Join(folder, "trade.yaml"):       page,
		older:                                     in30,
	} {
		if err := os.WriteFile(file, document, 0o644); err != nil {
			return fmt.Errorf("write an OpenAPI document: %w", err)
		}
	}
	return nil
}

// pageTypes returns the document of the types by which the page trades. They are those of no port: the page of the plugin has its own.
func pageTypes() ([]byte, error) {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	for _, value := range []any{
		tradev1.Contract{}, tradev1.Request{}, tradev1.OwnOffer{}, tradev1.Registry{}, tradev1.Market{}, tradev1.Need{}, tradev1.Found{},
		tradev1.Order{}, tradev1.Ordered{}, tradev1.Deed{},
	} {
		registry.Schema(reflect.TypeOf(value), true, "")
	}
	document := huma.OpenAPI{
		OpenAPI: "3.1.0", Info: &huma.Info{Title: "What the page shows of trade", Version: "v1"},
		Components: &huma.Components{Schemas: registry},
	}
	text, err := document.YAML()
	if err != nil {
		return nil, fmt.Errorf("write the types of the page: %w", err)
	}
	return text, nil
}
