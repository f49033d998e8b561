# SPDX-License-Identifier: MIT
# Sourced by demo and test: finds the CUDA headers and what the build needs, installs with apt what is
# missing when run as root, and says what to install otherwise.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 2; }

# command or header -> Debian package
need_command() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need_header() {
    printf '#include <stddef.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <%s>\n' "$1" |
        "${CC:-cc}" -x c -fsyntax-only - >/dev/null 2>&1 || missing+=("$2")
}

# Installs $missing, or says how.
install_missing() {
    [ ${#missing[@]} -eq 0 ] && return
    if ! command -v apt-get >/dev/null 2>&1; then
        die "please install: ${missing[*]} (names of Debian's packages)"
    fi
    if [ "$(id -u)" != 0 ]; then
        die "please run: apt-get install ${missing[*]}"
    fi
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null 2>&1 || true
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        die "apt-get could not install ${missing[*]}"
    missing=()
}

is_there() {
    command -v "$1" >/dev/null 2>&1 || [ -e "$1" ]
}

# install_if_possible COMMAND-OR-FILE PACKAGE "what is left out without it"
install_if_possible() {
    is_there "$1" && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing $2"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null 2>&1
    fi
    is_there "$1" || say "without $2 $3"
}

ensure_tools() {
    missing=()
    need_command gcc gcc
    need_command meson meson
    need_command ninja ninja-build
    need_command pkg-config pkg-config
    need_command python3 python3
    install_missing
    need_header libunwind.h libunwind-dev
    need_header libiberty/demangle.h libiberty-dev
    need_header cmocka.h libcmocka-dev
    if command -v nvcc >/dev/null 2>&1 || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
        need_command g++ g++
    fi
    install_missing
}

ensure_cuda_headers() {
    local place
    for place in ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda; do
        if [ -e "$place/include/cuda.h" ]; then
            export CUDA_HOME=$place
            return
        fi
    done
    if printf '#include <cuda.h>\n' | "${CC:-cc}" -x c -fsyntax-only - >/dev/null 2>&1; then
        return
    fi
    die "cuda.h not found: looked in ${CUDA_HOME:-\$CUDA_HOME}, /usr/local/cuda and the compiler's path; set CUDA_HOME"
}

# configure DIR [meson options]: a build folder with these options, made again when they changed.
configure() {
    local dir=$1 stamp
    shift
    stamp="CC=${CC:-} $*"
    if [ ! -e "$dir/build.ninja" ] || [ "$(cat "$dir/.options" 2>/dev/null)" != "$stamp" ]; then
        rm -rf "$dir"
        mkdir -p "$dir"
        meson setup "$dir" "$root" "$@" >"$dir/setup.log" 2>&1 || { cat "$dir/setup.log"; return 1; }
        printf '%s' "$stamp" >"$dir/.options"
    fi
}
