// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapi writes the OpenAPI document of the HTTP API, and the same in version 3.0 of OpenAPI, from which a client is
// generated. It does not know what is in it.
package main

import (
	"fmt"
	"os"

	"github.com/capacitorset/liqo-broker/pkg/httpapi"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: openapi FILE FILE-IN-3.0")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(file, older string) error {
	document, in30, err := httpapi.OpenAPI()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, document, 0o644); err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	if err := os.WriteFile(older, in30, 0o644); err != nil {
		return fmt.Errorf("write the document in 3.0: %w", err)
	}
	return nil
}
