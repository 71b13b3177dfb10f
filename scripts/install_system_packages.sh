#!/bin/sh
# Installs Debian packages where what they bring is missing.
#
# usage: install_system_packages.sh PURPOSE WANTED:PACKAGE ...
#
# WANTED is an absolute path, a shared library (".so" is in its name) or a command. What is found
# counts as there however it was installed. apt-get is asked only when something is missing.
set -eu

purpose=$1
shift

is_there() {
    case $1 in
    /*) test -e "$1" ;;
    *.so*) PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | grep -qF "$1" ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing=""
for pair in "$@"; do
    is_there "${pair%%:*}" || missing="$missing ${pair#*:}"
done
if [ -z "$missing" ]; then
    echo "The system has what $purpose needs."
    exit 0
fi

echo "Installing the Debian packages that $purpose needs:$missing"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no apt-get here. Please install what these Debian packages bring:$missing" >&2
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
