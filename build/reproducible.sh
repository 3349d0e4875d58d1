#!/bin/bash
# Copyright The liqo-broker Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Releases the commit that is checked out twice, from two clones in folders of different names and depths, and fails if one byte of what
# comes out differs. The second clone is the release: it is left in the folder OUT, if that is given. With COLD=yes each clone compiles
# everything itself, which takes much longer: Go's cache else gives the second one what the first has compiled, and only links it again.
set -euo pipefail

version=$1
out=${2:-}
root=$(git rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ -n $out && -e $out ]]; then
	echo "reproducible: $out is there already" >&2
	exit 1
fi
if [[ -n $(git -C "$root" status --porcelain) ]]; then
	echo "reproducible: what is not committed is left out" >&2
fi
for clone in "$work/a" "$work/another/folder/below"; do
	git clone --quiet "$root" "$clone"
	if [[ ${COLD:-} == yes ]]; then
		export GOCACHE=$work/cache-of-${clone##*/}
	fi
	make --no-print-directory -C "$clone" release VERSION="$version" OUT=dist
done

diff -r "$work/a/dist" "$work/another/folder/below/dist"
(cd "$work/a/dist" && sha256sum --check --quiet SHA256SUMS && cat SHA256SUMS)
echo "reproducible: $(find "$work/a/dist" -type f | wc -l) files are the same in both"
if [[ -n $out ]]; then
	mv --no-target-directory "$work/another/folder/below/dist" "$out"
fi
