#!/bin/sh
# Trains two versions with docker-compose.yml in a project of its own and takes everything down again, volumes too.
#
#   deploy/compose/smoke.sh          images that are not there are built
#
# DOCKER and COMPOSE name the commands (docker, docker compose); FIVE_PORT and FIVE_PROMETHEUS_PORT are used on
# 127.0.0.1 (18080, 19090). Needs curl.
set -eu
cd "$(dirname "$0")/../.."
compose=${COMPOSE:-${DOCKER:-docker} compose}
export FIVE_PORT="${FIVE_PORT:-18080}" FIVE_PROMETHEUS_PORT="${FIVE_PROMETHEUS_PORT:-19090}"
secrets=$(mktemp)

compose() {
  $compose --env-file "$secrets" -p five-smoke -f docker-compose.yml -f deploy/compose/smoke.yml "$@"
}

finish() {
  code=$?
  trap - EXIT INT TERM
  [ $code = 0 ] || compose logs --tail 15 || true
  compose down -v --remove-orphans -t 20 >/dev/null 2>&1 || true
  rm -rf "$secrets" "$secrets.d"
  [ $code = 0 ] || echo "smoke: failed, see the logs above" >&2
  exit $code
}
trap finish EXIT INT TERM

deploy/compose/make-env.sh "$secrets" >/dev/null
token=$(sed -n 's/^FIVE_OPERATOR_TOKEN=//p' "$secrets")
compose up --wait --wait-timeout 300
echo "smoke: every container is healthy"

version() {
  # The token goes by standard input: a command line can be read by everybody on this machine.
  echo "header = \"Authorization: Bearer $token\"" \
    | curl --noproxy "*" -fsS --config - "http://127.0.0.1:$FIVE_PORT/v1/status" | sed -n 's/.*"version":\([0-9]*\).*/\1/p'
}

first=$(version)
for _ in $(seq 120); do
  now=$(version)
  if [ "${now:-0}" -ge $((${first:-0} + 2)) ]; then
    echo "smoke: trained from version $first to $now"
    exit 0
  fi
  sleep 2
done
echo "smoke: no two versions in four minutes, still at version ${now:-none}" >&2
exit 1
