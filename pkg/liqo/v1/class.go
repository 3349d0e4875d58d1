// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// SliceClass is the class of the ResourceSlices that the broker answers.
const SliceClass = "liqo-broker"
