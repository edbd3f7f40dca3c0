#!/usr/bin/env bash
# Creates one of the environments of this checkout, unless it is up to date.
#
#   scripts/setup.sh full   .venv: Python 3.10 with Acme, Reverb, Launchpad
#   scripts/setup.sh core   .venv-core: Python 3.12 or 3.13 with the newest JAX
#   scripts/setup.sh colab  .venv-colab: Python 3.13 or 3.12 with Colab's JAX
#   scripts/setup.sh ray    .venv-ray: Python 3.12 with Ray and nothing else
#   scripts/setup.sh docs   .venv-docs: Python 3.12 or 3.13 with Sphinx
#   scripts/setup.sh accelerators  .venv-accel: Python 3.12 with compilers for GPUs, TPUs
#
# Exits with 3 if the required Python is missing and cannot be downloaded, with 4 if pip
# cannot install the packages of .venv-accel, and with 1 on any other failure.
# BT_ACME_PYTHON=/path/to/python is tried before all other interpreters.
set -euo pipefail
exec </dev/null  # Standard input may be closed or unreadable; no command needs it.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONHOME PYTHONPATH

environment=${1:-}
case $environment in
  full) versions='3.10' venv=.venv ;;
  core) versions='3.12 3.13' venv=.venv-core ;;
  colab) versions='3.13 3.12' venv=.venv-colab ;;
  ray) versions='3.12' venv=.venv-ray ;;
  docs) versions='3.12 3.13' venv=.venv-docs ;;
  accelerators) versions=3.12 venv=.venv-accel ;;
  *) echo "usage: $0 full|core|colab|ray|docs|accelerators" >&2; exit 2 ;;
esac
uv_version=0.13.8  # uv downloads an interpreter if none is found.
tools=$PWD/.tools
log=$tools/setup-$environment.log

say() { echo "setup: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

if [ "$environment" = full ] && [ "$(uname -sm)" != 'Linux x86_64' ]; then
  fail "Launchpad and Reverb support only Linux x86_64, but this machine is" \
    "$(uname -sm). Run \`pip install .\` to install bt_acme without them."
fi

# Prints the path of an interpreter that is suitable for the environment: of the
# required version, able to create virtual environments and, for Reverb, with libpython.
usable() {  # version, command
  "$2" -c '
import ensurepip, runpy, sys, venv
_, version, environment = sys.argv
assert "%d.%d" % sys.version_info[:2] == version
if environment == "full":
  runpy.run_path("bt_acme/compat.py")["load_libpython"]()
print(getattr(sys, "_base_executable", sys.executable))' \
    "$1" "$environment" 2>>"$log" </dev/null
}

candidates() {  # version
  if [ -n "${BT_ACME_PYTHON:-}" ]; then echo "$BT_ACME_PYTHON"; fi
  type -ap "python$1" || true
  ls -d "${PYENV_ROOT:-${HOME-}/.pyenv}/versions/$1"*/bin/python"$1" \
    "$tools/python"/*/bin/python"$1" 2>/dev/null || true
  if command -v uv >/dev/null; then uv python find "$1" 2>/dev/null || true; fi
  type -ap python3 python || true
}

find_python() {
  local version candidate
  for version in $versions; do
    while IFS= read -r candidate; do
      usable "$version" "$candidate" && return
    done < <(candidates "$version")
  done
  return 1
}

apt_install() {  # packages
  command -v apt-get >/dev/null || return 1
  local as_root=
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    as_root='sudo -n'
  fi
  say "apt-get install $*"
  $as_root apt-get update -qq >>"$log" 2>&1 || true
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq "$@" >>"$log" 2>&1
}

# Debian and Ubuntu distribute some parts of Python in separate packages.
complete_python() {
  local version
  for version in $versions; do
    if [ -x "/usr/bin/python$version" ]; then
      apt_install "python$version-venv" "libpython$version" || say "the system's \
Python $version is incomplete. Run: sudo apt-get install python$version-venv \
libpython$version"
    fi
  done
}

fetch_python() {
  local uv=$tools/uv/bin/uv version=${versions%% *}
  if command -v uv >/dev/null; then
    uv=$(command -v uv)
  elif [ ! -x "$uv" ]; then
    rm -rf "$tools/uv"
    if ! python3 -m venv "$tools/uv" >>"$log" 2>&1; then
      rm -rf "$tools/uv"
      apt_install python3-venv && python3 -m venv "$tools/uv" >>"$log" 2>&1 ||
        fail 'python3 cannot create virtual environments. Run' \
          '`sudo apt-get install python3-venv`, then retry.'
    fi
    "$tools/uv/bin/python" -m pip install --quiet "uv==$uv_version" \
      >>"$log" 2>&1 || true
  fi
  say "downloading Python $version"
  # Without UV_PYTHON_INSTALL_BIN=0, uv also changes ~/.local/bin.
  UV_PYTHON_INSTALL_BIN=0 UV_PYTHON_INSTALL_DIR=$tools/python \
    "$uv" python install "$version" >>"$log" 2>&1 ||
    fail "no complete Python $version was found, and the download failed (see" \
      "${log#"$PWD"/}). Install Python $version, or set" \
      'BT_ACME_PYTHON=/path/to/python, then retry.'
}

# Environments may be created in parallel. $tools/lock protects the shared parts:
# apt-get, the directory of downloaded interpreters, and the package's metadata.
choose_python() {
  exec 8>"$tools/lock"
  flock 8
  find_python && return
  complete_python
  find_python && return
  fetch_python
  find_python || fail "the downloaded Python ${versions%% *} does not run on" \
    "this machine (see ${log#"$PWD"/})."
}

mkdir -p "$tools"
exec 9>"$tools/lock-$environment"
flock 9  # Concurrent commands create each environment only once.

stamp=$venv/.made_from
wanted=$(
  { echo "$PWD"; cat setup.py requirements/*; } | sha256sum | cut -d ' ' -f 1
)
runs() { "$venv/bin/python" -c '' 2>/dev/null; }
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && runs; then exit 0; fi

: >"$log"
# Without a stamp, the previous setup was interrupted: start over.
if [ ! -e "$stamp" ] || ! runs; then
  python=$(choose_python) || exit 3
  say "creating $venv with $python"
  rm -rf "$venv"
  "$python" -m venv "$venv" >>"$log" 2>&1 ||
    fail "$python could not create $venv (see ${log#"$PWD"/})."
fi
rm -f "$stamp"
say "installing requirements/$environment.txt into $venv (a few minutes)"
pip="$venv/bin/python -m pip --quiet --disable-pip-version-check"
install() {
  # These hold nothing of bt_acme.
  if [[ $environment = ray || $environment = docs ]]; then
    $pip install -r "requirements/$environment.txt"
    return
  fi
  $pip install -r "requirements/$environment.txt" -r requirements/dev.txt &&
    flock "$tools/lock" $pip install --no-deps --no-build-isolation --editable .
}
if ! install >>"$log" 2>&1; then
  say "pip failed: $(grep '^ERROR' "$log" | tail -n 1) (see ${log#"$PWD"/})."
  # Only `make test-accelerators` needs these packages of 600 MB.
  if [ "$environment" = accelerators ]; then exit 4; fi
  exit 1
fi
echo "$wanted" >"$stamp"
