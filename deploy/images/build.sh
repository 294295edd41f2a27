#!/bin/sh
# Builds the images of all services, or of those named, and prints their sizes by layer:
#
#   deploy/images/build.sh [dota-env rollout ...]
#
# The tag is that of tag.sh, and besides it `dev`, which docker-compose.yml uses: this machine's last build. With VERSION
# there is that tag alone. FLAVOUR=cuda builds optimizer and inference with torch for CUDA, under the tag with -cuda.
# Other environment: DOCKER (docker), REGISTRY (before the names), BASE, TORCH_INDEX (the Dockerfile's), JOBS.
# TORCH_INDEX="" asks pip's own index only.
set -eu
cd "$(dirname "$0")/../.."
docker=${DOCKER:-docker}
base=${BASE:-python:3.11-slim-bookworm}
tag=$(deploy/images/tag.sh)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
case ${FLAVOUR:-} in
  "") suffix= services="dota-env dotaservice rollout opponents evaluator play controller inference optimizer" ;;
  cuda)
    suffix=-cuda services="inference optimizer"
    TORCH_INDEX=${TORCH_INDEX-} ;;
  *) echo "build.sh: FLAVOUR=$FLAVOUR: only cuda, or none for the CPU, is allowed" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086  # names of services have no spaces
[ $# -gt 0 ] || set -- $services
export DOCKER_BUILDKIT=1

images=
for name in "$@"; do
  repository=${REGISTRY:+$REGISTRY/}five/$name
  image=$repository:$tag$suffix
  [ -n "${VERSION:-}" ] && moving= || moving=$repository:dev$suffix
  echo "building $image"
  "$docker" build -q --target "$name" -t "$image" ${moving:+-t "$moving"} --build-arg BASE="$base" \
    --build-arg VERSION="$tag" --build-arg REVISION="$revision" ${JOBS:+--build-arg JOBS="$JOBS"} \
    --build-arg FLAVOUR="${FLAVOUR:-cpu}" ${TORCH_INDEX+--build-arg TORCH_INDEX="$TORCH_INDEX"} . >/dev/null
  images="$images $image"
done
# shellcheck disable=SC2086  # names of images have no spaces
"${PYTHON:-python3}" deploy/images/sizes.py "$docker" "$base" $images
