#!/bin/bash
# Copyright The liqo-broker Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs those of the given Debian packages that are missing, and says so. What drives a browser may have come from elsewhere: of that the
# programs count, and how new they are.
set -euo pipefail

# Reports whether what a package is for is here.
here() {
	case $1 in
	nodejs) node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null ;;
	npm) command -v npm >/dev/null ;;
	chromium) [[ -x ${CHROMIUM:-/usr/bin/chromium} ]] ;;
	*) [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null || true)" == installed ]] ;;
	esac
}

missing=()
for package in "$@"; do
	here "$package" || missing+=("$package")
done
if (( ${#missing[@]} == 0 )); then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "deps: this machine has no apt; install what these Debian packages hold: ${missing[*]}" >&2
	exit 1
fi
if (( EUID != 0 )); then
	echo "deps: not root; run: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi

echo "deps: installing Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# The lab and the tests start their own containerd, etcd, Prometheus and PostgreSQL: those of the packages stay off. policy-rc.d is
# Debian's way to say so.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
	trap 'rm -f "$policy"' EXIT
fi
# PostgreSQL's package also makes a database, which its service would start with the machine, unless it is told before (pg_createcluster(1)).
# Debian ships no file of this name, so that nothing asks whose it is; who has a database already keeps it.
if [[ " ${missing[*]} " == *" postgresql "* ]]; then
	mkdir -p /etc/postgresql-common/createcluster.d
	echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/liqo-broker.conf
fi
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"

# Nor is Prometheus started with the machine: only the tests run it.
if [[ " ${missing[*]} " == *" prometheus "* ]]; then
	update-rc.d prometheus disable
fi

# An old release of Debian has an old node.
for package in "${missing[@]}"; do
	if ! here "$package"; then
		echo "deps: $package is installed, and what it is for is not here or too old: node 18 or later, with npm, and ${CHROMIUM:-/usr/bin/chromium}" >&2
		exit 1
	fi
done
