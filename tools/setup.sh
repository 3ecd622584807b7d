# shellcheck shell=bash
# What tools/rehearse, tools/check and .ci/run share: install packages, configure, build.
# To be sourced with `root` set to the repository's real path. All messages go to stderr:
# stdout belongs to the program.

root=${root:?}

# Checkouts share their compiled objects, wherever they are; messages still show full paths.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_ABSSTDERR=1
# What ccache needs for precompiled headers; we use neither __DATE__ nor __TIME__.
export CCACHE_SLOPPINESS=pch_defines,time_macros

say() { echo "rehearse: $*" >&2; }
die() { say "$@"; exit 1; }

# packages SECTION: the names listed under [SECTION] in tools/packages.txt.
packages() {
  local list=$root/tools/packages.txt line section='' number=0
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    read -r line <<< "${line%%#*}"   # drops the comment and surrounding blanks
    if [[ $line =~ ^\[([a-z]+)\]$ ]]; then
      section=${BASH_REMATCH[1]}
    elif [[ $line =~ ^[a-z0-9][a-z0-9+.-]+$ && -n $section ]]; then
      [[ $section != "$1" ]] || echo "$line"
    elif [[ -n $line ]]; then
      die "$list:$number: found \"$line\", expected a package name below a [section]"
    fi
  done < "$list"
}

# require_packages SECTION INSTALL: installs a section's missing packages; with INSTALL=no it fails.
require_packages() {
  if ! command -v dpkg-query > /dev/null; then
    say "this is not Debian: assuming that what tools/packages.txt lists is installed"
    return
  fi
  local names installed name missing=()
  names=$(packages "$1")
  # dpkg-query fails if it does not know one of the names, but prints the others.
  # shellcheck disable=SC2016,SC2086
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $names 2> /dev/null || true)
  for name in $names; do
    grep -qxF "$name installed" <<< "$installed" || missing+=("$name")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  [[ $2 != no ]] || die "missing Debian packages, and --no-install was given: ${missing[*]}"

  local as_root=()
  if [[ $EUID -ne 0 ]]; then
    command -v sudo > /dev/null ||
      die "not root and no sudo; please run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  local log=$root/build/apt.log
  # A third party's broken source need not stop us: what counts is the installation.
  "${apt[@]}" update > "$log" 2>&1 < /dev/null || say "apt-get update failed, going on"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >> "$log" 2>&1 < /dev/null || {
    tail -n 20 "$log" >&2
    die "apt-get could not install them"
  }
}

# configure PRESET: creates the Ninja files of build/PRESET (see CMakePresets.json). Ninja itself
# notices later changes to CMake files.
configure() {
  local directory=$root/build/$1
  # A checkout that was moved or copied with its build directory starts afresh.
  if [[ -e $directory/CMakeCache.txt ]] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$directory/CMakeCache.txt"; then
    rm -rf "$directory"
  fi
  [[ $directory/build.ninja -nt $root/CMakePresets.json ]] || cmake -S "$root" --preset "$1"
}

# ccache is optional: if it has no place to write, compile without it.
use_ccache_if_it_works() {
  local cache
  cache=$(ccache --get-config=cache_dir 2> /dev/null) || return 0
  { mkdir -p "$cache/tmp" 2> /dev/null && [[ -w $cache/tmp ]]; } || export CCACHE_DISABLE=1
}

# build PRESET [TARGET…]: configures and builds.
build() {
  local preset=$1
  shift
  use_ccache_if_it_works
  configure "$preset" && cmake --build "$root/build/$preset" ${1:+--target "$@"}
}

# locked COMMAND…: one set-up at a time in a checkout. The lock's descriptor is not inherited, so
# that nothing left running in the background keeps the lock.
locked() {
  mkdir -p "$root/build"
  local lock
  exec {lock}> "$root/build/.lock"
  flock -n "$lock" || {
    say "waiting for another build of this checkout"
    flock "$lock"
  }
  "$@" {lock}>&-
  exec {lock}>&-
}
