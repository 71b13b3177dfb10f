#!/bin/sh
# Installs the Debian packages that the tests use, where they are missing.
#
# usage: install_system_packages.sh COMMAND:PACKAGE ...
#
# A package counts as there when its command is found, so that programs installed in any other way
# are used as they are. apt-get is asked only when something is missing.
set -eu

missing=""
for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
if [ -z "$missing" ]; then
    echo "The programs that the tests use are all there."
    exit 0
fi

echo "Installing the Debian packages that the tests use:$missing"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no apt-get here. Please install these programs yourself:$missing" >&2
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root="sudo"
else
    echo "Installing them needs root: run 'apt-get install$missing' as root, then try again." >&2
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        echo "'$*' failed; what it printed is above." >&2
        exit 1
    fi
}
run $as_root apt-get update
# shellcheck disable=SC2086  # the words of $missing are package names
run $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $missing
echo "  installed"
