// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hello stands for a program in the tests of the release. It has a module linked in.
package main

import (
	"fmt"

	"golang.org/x/mod/semver"
)

func main() { fmt.Println(semver.Canonical("v1")) }
