#!/bin/sh
# Writes the secrets that docker-compose.yml needs: `deploy/compose/make-env.sh [FILE]`, .env by default.
# A secret that the file has is kept, so it can be run again after an upgrade.
set -eu
file=${1:-.env}
umask 077
touch "$file"
for name in FIVE_TOKEN FIVE_VIEWER_TOKEN FIVE_STATE_PASSWORD FIVE_PARAMS_PASSWORD GRAFANA_PASSWORD; do
  grep -q "^$name=" "$file" && continue
  # The last line of a file written by hand may lack its end.
  [ -z "$(tail -c 1 "$file")" ] || echo >>"$file"
  printf '%s=%s\n' "$name" "$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')" >>"$file"
  echo "$file: new $name"
done
