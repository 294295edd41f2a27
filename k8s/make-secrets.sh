#!/bin/sh
# Writes all Secrets of a release as manifests, for installing without helm's look into the cluster (secrets.create=false):
#
#   RUN=my-run k8s/make-secrets.sh | kubectl -n five create -f -
#
# RELEASE (five) is the release's name, RUN the run's (the release's, unless run.name is set). Names begin as the chart's
# do: with RELEASE, and with RELEASE-five where RELEASE has no "five" in it; FULLNAME is fullnameOverride. FILE keeps the
# secrets themselves, as deploy/compose/make-env.sh has them, so that they can be made again; without it they are in the
# manifests alone. An operator's and a viewer's token are in the Secret NAME-operator-token, which no pod is given.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
release=${RELEASE:-five}
case $release in *five*) prefix=$release ;; *) prefix=$release-five ;; esac
prefix=${FULLNAME:-$prefix}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
file=${FILE:-$work/secrets}
printf 'name: %s\n' "${RUN:-$release}" >"$work/run.yaml"
FIVE_RUN=$work/run.yaml "$here/deploy/compose/make-env.sh" "$file" >&2
value() { sed -n "s/^$1=//p" "$file" | tail -n 1; }
folder=$(value FIVE_SECRETS)

# secret NAME KEY VALUE ...
secret() {
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: %s-%s\n  labels: {app.kubernetes.io/instance: %s}\ntype: Opaque\nstringData:\n' \
    "$prefix" "$1" "$release"
  shift
  while [ $# -gt 0 ]; do
    printf '  %s: |-\n' "$1"
    printf '%s\n' "$2" | sed 's/^/    /'
    shift 2
  done
}

for caller in controller evaluator play rollout; do
  secret "caller-$caller" secret "$(value "FIVE_$(echo "$caller" | tr a-z A-Z)_SECRET")"
done
secret callers callers.json "$(cat "$folder/callers/callers.json")"
secret operator-token operator-token "$(value FIVE_OPERATOR_TOKEN)" viewer-token "$(value FIVE_VIEWER_TOKEN)"
secret test-token token "$(value FIVE_VIEWER_TOKEN)"
secret api-tokens tokens.json "$(cat "$folder/controller/tokens.json")"
secret redis-users state.acl "$(cat "$folder/redis-state/users.acl")" params.acl "$(cat "$folder/redis-params/users.acl")"
for user in controller evaluator inference opponents optimizer play rollout probe admin; do
  password=$(value "FIVE_$(echo "$user" | tr a-z A-Z)_PASSWORD")
  if grep -q "^user $user " "$here/charts/files/users-params.acl"; then
    secret "redis-$user" state-password "$password" params-password "$password"
  else
    secret "redis-$user" state-password "$password"
  fi
done
