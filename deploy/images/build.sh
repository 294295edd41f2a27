#!/bin/sh
# Builds the images of all services, or of those named, and prints their sizes by layer:
#
#   deploy/images/build.sh [dota-env rollout ...]
#
# Environment: DOCKER (docker), VERSION (the project's), BASE, TORCH, TORCH_INDEX (the Dockerfile's), JOBS.
# TORCH_INDEX="" asks pip's own index only.
set -eu
cd "$(dirname "$0")/../.."
docker=${DOCKER:-docker}
base=${BASE:-python:3.11-slim-bookworm}
version=${VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)}
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
[ $# -gt 0 ] || set -- dota-env rollout opponents evaluator play controller inference optimizer
export DOCKER_BUILDKIT=1

images=
for name in "$@"; do
  image=five/$name:$version
  echo "building $image"
  "$docker" build -q --target "$name" -t "$image" --build-arg BASE="$base" --build-arg VERSION="$version" \
    --build-arg REVISION="$revision" ${JOBS:+--build-arg JOBS="$JOBS"} ${TORCH:+--build-arg TORCH="$TORCH"} \
    ${TORCH_INDEX+--build-arg TORCH_INDEX="$TORCH_INDEX"} . >/dev/null
  images="$images $image"
done
# shellcheck disable=SC2086  # names of images have no spaces
"${PYTHON:-python3}" deploy/images/sizes.py "$docker" "$base" $images
