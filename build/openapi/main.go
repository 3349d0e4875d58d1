// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapi writes the OpenAPI documents of all HTTP APIs into a folder, and that of the broker's API once more in version 3.0 of
// OpenAPI, from which a client is generated. It does not know what is in them.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/capacitorset/liqo-broker/pkg/httpapi"
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
	for file, document := range map[string][]byte{
		filepath.Join(folder, "openapi.yaml"):     broker,
		filepath.Join(folder, "registry.yaml"):    registry,
		filepath.Join(folder, "negotiation.yaml"): negotiated,
		older: in30,
	} {
		if err := os.WriteFile(file, document, 0o644); err != nil {
			return fmt.Errorf("write an OpenAPI document: %w", err)
		}
	}
	return nil
}
