// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

/** Whether this is the script of a saved page, which build/tools/ui says: what is for the other is left out. */
declare const SAVED: boolean;
