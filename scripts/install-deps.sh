#!/bin/sh
# Installs what Chunkmill is built and tested with, from the distribution
# (Debian 12 and later, current Ubuntu).  Does nothing when nothing is missing.
# install-deps.sh build: only what it is built with.
set -eu

# Compiler and libraries; none of the names holds a version.
NEEDED="gcc libc6-dev make pkg-config
libnetcdf-dev libhdf5-dev libzstd-dev libblosc-dev libdeflate-dev libjson-c-dev liblz4-dev
libbz2-dev libaec-dev libxxhash-dev liburing-dev libcmocka-dev libexpat1-dev"
# libcurl comes in flavours that exclude each other: any will do.
dpkg-query -W -f '${db:Status-Status} ${Provides}\n' 2>/dev/null | grep -qE '^installed .*libcurl-dev' ||
    NEEDED="$NEEDED libcurl4-gnutls-dev"
# What the tests and `make lint` run: their parts are skipped, and counted, where it is absent.
WANTED="git python3 python3-venv pyflakes3 gdal-bin netcdf-bin clang-format
slurmctld slurmd slurm-client munge openmpi-bin"
# The servers of tests/store, and what shows where a program hangs, for `make check-long` alone:
# install-deps.sh long.
[ "${1:-}" != long ] ||
    WANTED="$WANTED curl gdb nginx-light memcached swift-proxy swift-account swift-container swift-object"
# readbench's pages are looked at in a browser, which Ubuntu has in another form only.
grep -qx 'ID=debian' /etc/os-release 2>/dev/null && WANTED="$WANTED chromium"
[ "${1:-}" != build ] || WANTED=

if ! command -v dpkg-query >/dev/null; then
    echo "install-deps: this is no Debian or Ubuntu; install the counterparts of: $NEEDED" >&2
    echo "install-deps: then build with 'make NODEPS=1'" >&2
    exit 1
fi

# Prints those of the packages named that are not installed.  A virtual package
# (pkg-config, where pkgconf provides it) counts as installed through its provider.
missing() {
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed && continue
        dpkg-query -W -f '${db:Status-Status} ${Provides}\n' 2>/dev/null |
            grep -qE "^installed .*(^|[ ,])$package( |,|\$)" && continue
        printf '%s ' "$package"
    done
}

# shellcheck disable=SC2086 # the lists are words
needed=$(missing $NEEDED)
# shellcheck disable=SC2086
wanted=$(missing $WANTED)
[ -n "$needed$wanted" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null; then
        as_root=sudo
    else
        echo "install-deps: missing: $needed$wanted" >&2
        echo "install-deps: run this as root, or install sudo, or install them and use 'make NODEPS=1'" >&2
        exit 1
    fi
fi

run() {
    echo "install-deps: $*"
    # shellcheck disable=SC2086 # empty for root
    $as_root env DEBIAN_FRONTEND=noninteractive "$@"
}

# True when apt knows a candidate for every package named: then its lists need no update.
available() {
    for package in "$@"; do
        apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]' || return 1
    done
}

install() {
    # A system that updates itself may hold the lock for a while.
    run apt-get -o DPkg::Lock::Timeout=120 install -y -q --no-install-recommends "$@"
}

# shellcheck disable=SC2086
{
    available $needed $wanted || run apt-get update -q
    # Lists can be older than the archive, which then lacks the file that they name.
    if [ -n "$needed" ]; then
        install $needed || { run apt-get update -q && install $needed; } || {
            echo "install-deps: could not install: $needed" >&2
            exit 1
        }
    fi
    if [ -n "$wanted" ]; then
        install $wanted || for package in $wanted; do
            install "$package" ||
                echo "install-deps: could not install $package; what needs it is skipped" >&2
        done
    fi
}
