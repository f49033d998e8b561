#!/bin/sh
# SPDX-License-Identifier: MIT
# Formats the C sources with clang-format 14; with --check only tells which files differ.
set -eu
cd "$(dirname "$0")/.."

tool=
for candidate in clang-format-14 clang-format; do
    if command -v "$candidate" >/dev/null 2>&1; then
        tool=$candidate
        break
    fi
done
if [ -z "$tool" ]; then
    echo "format: skipped: needs clang-format 14, none is installed"
    exit 0
fi
version=$("$tool" --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
if [ "$version" != 14 ]; then
    echo "format: skipped: needs clang-format 14, $tool is $version"
    exit 0
fi

case ${1-} in
--check) set -- --dry-run -Werror ;;
'') set -- -i ;;
*)
    echo "usage: format.sh [--check]" >&2
    exit 2
    ;;
esac
folders=
for folder in include src preload tests; do
    [ ! -d "$folder" ] || folders="$folders $folder"
done
# shellcheck disable=SC2086  # the folders are a list
find $folders -type f \( -name '*.c' -o -name '*.h' \) -exec "$tool" --style=file "$@" {} +
