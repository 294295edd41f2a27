#!/bin/sh
# Prints the tag of images built from this checkout, which names their content:
#
#   0.2.0                               at the release's git tag v0.2.0, without changes
#   0.2.0-dev.g9b1c2d3e4f5a             at another commit
#   0.2.0-dev.g9b1c2d3e4f5a.t0a1b2c3d   with uncommitted changes: a hash of all files that git does not ignore
#
# VERSION overrides it.
set -eu
cd "$(dirname "$0")/../.."
[ -z "${VERSION:-}" ] || { echo "$VERSION"; exit; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
if [ "$(git rev-parse --show-cdup 2>/dev/null || echo none)" != "" ] ||
  ! commit=$(git rev-parse -q --verify --short=12 HEAD); then
  echo "tag.sh: $PWD is not the top of a git checkout with a commit, so its content has no name: set VERSION" >&2
  exit 2
fi
if [ -n "$(GIT_OPTIONAL_LOCKS=0 git status --porcelain)" ]; then
  index=$(mktemp)
  trap 'rm -f "$index"' EXIT
  cp "$(git rev-parse --git-path index)" "$index"
  GIT_INDEX_FILE=$index git add -A
  echo "$version-dev.g$commit.t$(GIT_INDEX_FILE=$index git write-tree | cut -c1-8)"
elif git tag --points-at HEAD | grep -qx "v$version"; then
  echo "$version"
else
  echo "$version-dev.g$commit"
fi
