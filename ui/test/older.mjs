// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What node 18, which Debian 12 has, lacks of what the page and its tests use; every browser that the page is for has it.

for (const [name, copied] of Object.entries({ toSorted: "sort", toReversed: "reverse" })) {
  const value = function (...given) {
    return [...this][copied](...given);
  };
  if (!(name in Array.prototype)) Object.defineProperty(Array.prototype, name, { value, configurable: true, writable: true });
}
