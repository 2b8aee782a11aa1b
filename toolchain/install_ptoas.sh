#!/usr/bin/env bash
# Unpack the pinned PTOAS release where PyPTO finds it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=versions.env
. "$here/versions.env"
default_root="${XDG_DATA_HOME:-$HOME/.local/share}/ptoas/$PTOAS_VERSION"

usage() {
    cat <<EOF
usage: install_ptoas.sh [ROOT]

Installs PTOAS $PTOAS_VERSION into ROOT (default $default_root).
PTOAS is a separate project; PyPTO neither contains nor mirrors it, so say where its archive is:

  PTOAS_ARCHIVE=/path/to/ptoas-bin.tar.gz   an archive already on this machine, or
  PTOAS_URL=https://...                     where to download it
  PTOAS_SHA256=...                          optional: refuse an archive with another checksum

Releases: https://github.com/hw-native-sys/PTOAS/releases
EOF
}

fail() {
    echo "install_ptoas: $*" >&2
    exit 1
}

launcher() {
    local candidate
    for candidate in ptoas.sh ptoas bin/ptoas; do
        if [ -f "$1/$candidate" ] && [ -x "$1/$candidate" ]; then
            echo "$1/$candidate"
            return
        fi
    done
    return 1
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
esac
root=${1:-$default_root}

if [ -z "${PTOAS_ARCHIVE:-}" ] && [ -z "${PTOAS_URL:-}" ]; then
    usage >&2
    exit 2
fi
[ ! -e "$root" ] || fail "$root exists; remove it or name another ROOT"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=${PTOAS_ARCHIVE:-}
if [ -z "$archive" ]; then
    archive="$work/${PTOAS_URL##*/}"
    python3 -c 'import sys, urllib.request as r; r.urlretrieve(*sys.argv[1:])' "$PTOAS_URL" "$archive" ||
        fail "cannot download $PTOAS_URL"
fi
[ -f "$archive" ] || fail "no archive at $archive"
if [ -n "${PTOAS_SHA256:-}" ]; then
    echo "$PTOAS_SHA256  $archive" | sha256sum --check --status || fail "$archive does not have checksum $PTOAS_SHA256"
fi

mkdir "$work/tree"
case "$archive" in
*.zip | *.whl) python3 -m zipfile -e "$archive" "$work/tree" ;;
*) tar -xf "$archive" -C "$work/tree" ;;
esac

tree="$work/tree"
if ! launcher "$tree" >/dev/null; then
    entries=("$tree"/*)
    [ ${#entries[@]} -eq 1 ] && [ -d "${entries[0]}" ] && tree=${entries[0]}
fi
launcher "$tree" >/dev/null || fail "$archive holds no executable ptoas.sh, ptoas or bin/ptoas"

mkdir -p "$(dirname "$root")"
mv "$tree" "$root"
echo "installed $("$(launcher "$root")" --version 2>&1 | head -n 1) in $root"
echo "now set: export PTOAS_ROOT=$root"
