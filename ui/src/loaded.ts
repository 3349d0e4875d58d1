// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The screens that are loaded together, when one of them is opened: apart they would take more.

export { Screen as Own } from "./own/screens";
export { Screen as Trade } from "./trade/screens";
