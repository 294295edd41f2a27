#!/bin/sh
# Writes the certificates by which the services' gRPC calls go under TLS both ways (deploy/compose/tls.yml):
#
#   deploy/compose/make-certificates.sh [DAYS]    a new certificate, good for DAYS (90)
#
# The first call makes an authority too, in FIVE_SECRETS/private/authority (FIVE_SECRETS as in .env); its key is no
# container's. Each further call issues a new certificate, which the services read within seconds while the run goes on.
# ENV_FILE (.env) is make-env.sh's file.
set -eu
env_file=${ENV_FILE:-.env}
days=${1:-90}
case $days in '' | *[!0-9]* | 0) sed -n '2,9p' "$0"; exit 2 ;; esac
[ -f "$env_file" ] || { echo "make-certificates: there is no $env_file; \`make env\` writes it" >&2; exit 2; }
command -v openssl >/dev/null || { echo "make-certificates: openssl is needed" >&2; exit 2; }
secrets=$(sed -n 's/^FIVE_SECRETS=//p' "$env_file" | tail -n 1)
[ -n "$secrets" ] || { echo "make-certificates: $env_file has no FIVE_SECRETS; \`make env\` adds it" >&2; exit 2; }

umask 077
authority=$secrets/private/authority
mkdir -p "$authority"
work=$(mktemp -d "$authority/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

# Certificate and key of the authority come by one rename: there are both or neither.
if [ ! -d "$authority/ca" ]; then
  mkdir "$work/ca"
  # shellcheck disable=SC2086
  openssl req -x509 $key -keyout "$work/ca/ca.key" -out "$work/ca/ca.crt" -subj "/CN=five on compose" -days 3650 2>/dev/null
  mv "$work/ca" "$authority/ca"
  echo "$authority/ca: a new authority"
fi

# The names of the containers that are dialled, as `make env` and the run's file have them; optimizers of
# deploy/compose/group.yml by container.
names=IP:127.0.0.1,DNS:localhost
number=1
while [ "$number" -le "${FIVE_OPTIMIZERS:-2}" ]; do names=$names,DNS:five-optimizer-$number; number=$((number + 1)); done
for service in controller dota-env evaluator inference opponents optimizer play rollout; do names=$names,DNS:$service; done
echo "subjectAltName=$names" >"$work/names"
# shellcheck disable=SC2086
openssl req $key -keyout "$work/tls.key" -out "$work/request" -subj /CN=five 2>/dev/null
openssl x509 -req -in "$work/request" -CA "$authority/ca/ca.crt" -CAkey "$authority/ca/ca.key" \
  -set_serial "0x$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')" -days "$days" -extfile "$work/names" \
  -out "$work/tls.crt" 2>/dev/null

# Containers read them as user 10001, through a folder that nobody else of this machine can enter. Each is renamed over
# the old one; who reads in between finds a key that does not fit, keeps what it has, and looks again.
umask 022
tls=$secrets/private/tls
mkdir -p "$tls"
cp "$authority/ca/ca.crt" "$work/ca.crt"
chmod 644 "$work/ca.crt" "$work/tls.crt" "$work/tls.key"
for file in ca.crt tls.key tls.crt; do mv "$work/$file" "$tls/$file"; done
echo "$tls: a new certificate, good for $days days"
