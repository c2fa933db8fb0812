#!/usr/bin/env bash
# clang-format of the version that this source is formatted with: others lay some lines
# out differently.  Takes its options.
set -eu
for program in clang-format-14 clang-format; do
    if "$program" --version 2>/dev/null | grep -q ' version 14\.'; then exec "$program" "$@"; fi
done
echo "clang-format 14 is not installed" >&2
exit 127
