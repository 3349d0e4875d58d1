#!/bin/bash
# Copyright The liqo-broker Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Compares benchmarks of this tree with those of another commit. Both are compiled, then they run in turns, so that whatever else the
# machine does is seen by both. A package is found again in the other commit by its name and its benchmarks, wherever it was.
#
#   build/bench-against.sh COMMIT PACKAGE...
set -euo pipefail

benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
rounds=${ROUNDS:-6}
base=$1
shift
out=$(mktemp -d)
trap 'git worktree remove --force "$out/tree" 2>/dev/null || true; rm -rf "$out"' EXIT
git worktree add --quiet --detach "$out/tree" "$base"

# Compile both of each package.
compared=()
for package in "$@"; do
	package=${package#./}
	name=$(basename "$package")
	function=$(grep -hoE '^func Benchmark[A-Za-z]+' "$package"/*_test.go | head -1)
	old=$(cd "$out/tree" && grep -rlE "^$function\(" --include='*_test.go' . | xargs -n 1 dirname | grep -E "/$name\$" | head -1 || true)
	if [[ -z "$old" ]]; then
		echo "bench-against: $base has no $function in a package $name" >&2
		continue
	fi
	go test -c -o "$out/$name.after" "./$package"
	(cd "$out/tree" && go test -c -o "$out/$name.before" "$old")
	compared+=("$name $package $out/tree/$old")
done

# Run them in turns. The path of a package is no part of what is compared.
for ((round = 0; round < rounds; round++)); do
	for pair in "${compared[@]}"; do
		read -r name package old <<<"$pair"
		for side in before after; do
			folder=$package
			[[ $side == before ]] && folder=$old
			(cd "$folder" && "$out/$name.$side" -test.run='^$' -test.bench=. -test.benchmem -test.benchtime="${BENCHTIME:-200ms}" -test.timeout=20m) |
				sed "s,^pkg: .*,pkg: $name," >>"$out/$side"
		done
	done
done
go run "$benchstat" "before=$out/before" "after=$out/after"
