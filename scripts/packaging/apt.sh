#!/bin/sh
# apt.sh FOLDER TYPE [ARCHITECTURE [SUITE]]: prints the file to name in APT_CONFIG, with which apt knows
# packages of TYPE (deb or deb-src) of the archives that this system uses, for ARCHITECTURE, or those of
# SUITE in the first of these archives.  All of apt's files are in FOLDER/apt: the system's stay as they
# are, and no root is needed.
set -eu
[ $# -ge 2 ] || { echo "usage: scripts/packaging/apt.sh FOLDER deb|deb-src [ARCHITECTURE [SUITE]]" >&2; exit 2; }
type=$2 architecture=${3-$(dpkg --print-architecture)} suite=${4-}
apt=$1/apt/$type-$architecture$suite
echo "$apt/conf"
# A day is fresh enough.
[ -z "$(find "$apt/conf" -mtime -1 2>/dev/null)" ] || exit 0
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
if [ -n "$suite" ]; then
    cat >"$apt/parts/suite.sources" <<EOF
Types: $type
URIs: $(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' | head -n 1)
Suites: $suite
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOF
else
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        [ ! -f "$list" ] || sed -E "s/^Types:.*/Types: $type/; s/^deb(-src)? /$type /; /^Architectures:/d" "$list" \
            >"$apt/parts/$(basename "$list")"
    done
fi
: >"$apt/status"
cat >"$apt/conf.new" <<EOF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/parts";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "root";
Debug::NoLocking "true";
EOF
APT_CONFIG=$apt/conf.new apt-get update -qq
mv "$apt/conf.new" "$apt/conf"
