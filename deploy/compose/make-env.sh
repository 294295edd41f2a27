#!/bin/sh
# Writes what docker-compose.yml needs to know who may do what: `deploy/compose/make-env.sh [FILE]`, .env by default.
#
# FILE holds the secrets themselves, for its owner alone: a secret for each caller of services, the operator's and the
# viewer's token, and a password for each user of Redis. Beside it, in FIVE_SECRETS (.five for .env, else FILE.d), lies what
# containers mount: hashes of them (users.acl of each Redis, callers.json of the services, tokens.json of the REST API) and,
# in a folder that nobody else can enter, the passwords and the callers' secrets themselves.
#
# A secret that FILE has is kept, so it can be run again: after an upgrade, or when FIVE_RUN names a run of another name.
# FIVE_<USER>_PASSWORD_OLD and FIVE_<CALLER>_SECRET_ALSO are those that are accepted in a rotation: see rotate.sh.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
file=${1:-.env}
hash_of() { printf %s "$1" | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-64; }
[ -n "$(hash_of "")" ] || { echo "make-env: sha256sum or shasum is needed" >&2; exit 2; }

umask 077
touch "$file"
chmod go= "$file"  # one written by hand may be open to others

value() { sed -n "s/^$1=//p" "$file" | tail -n 1; }

put() {
  # The last line of a file written by hand may lack its end.
  [ -z "$(tail -c 1 "$file")" ] || echo >>"$file"
  printf '%s=%s\n' "$1" "$2" >>"$file"
}

for name in FIVE_CONTROLLER_SECRET FIVE_EVALUATOR_SECRET FIVE_PLAY_SECRET FIVE_ROLLOUT_SECRET FIVE_OPERATOR_TOKEN \
  FIVE_VIEWER_TOKEN FIVE_CONTROLLER_PASSWORD FIVE_EVALUATOR_PASSWORD \
  FIVE_INFERENCE_PASSWORD FIVE_OPPONENTS_PASSWORD FIVE_OPTIMIZER_PASSWORD FIVE_PLAY_PASSWORD FIVE_ROLLOUT_PASSWORD \
  FIVE_PROBE_PASSWORD FIVE_ADMIN_PASSWORD GRAFANA_PASSWORD; do
  [ -z "$(value "$name")" ] || continue
  put "$name" "$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')"
  echo "$file: new $name"
done

case $file in
  .env | ./.env) folder=./.five ;;
  /*) folder=$file.d ;;
  *) folder=$PWD/$file.d ;;
esac
grep -q '^FIVE_SECRETS=' "$file" || put FIVE_SECRETS "$folder"
folder=$(value FIVE_SECRETS)

run=${FIVE_RUN:-$(value FIVE_RUN)}
run=${run:-$here/deploy/compose/run.yaml}
name=$(sed -n "s/^name: *['\"]*\([A-Za-z0-9._-]*\)['\"]* *\(#.*\)\{0,1\}$/\1/p" "$run" | head -n 1)
[ -n "$name" ] || { echo "make-env: $run has no line 'name: ...', which the users of Redis are made for" >&2; exit 2; }

# Containers read these as user 10001. They hold hashes of 192 random bits, which tell nothing. Written beside, then
# renamed: a server may read one at any time.
umask 022
mkdir -p "$folder/redis-state" "$folder/redis-params" "$folder/controller"
for role in state params; do
  text=$(sed "s/@run@/$name/g" "$here/charts/files/users-$role.acl")
  for user in controller evaluator inference opponents optimizer play rollout probe admin; do
    upper=$(echo "$user" | tr a-z A-Z)
    hashes="on #$(hash_of "$(value "FIVE_${upper}_PASSWORD")")"
    old=$(value "FIVE_${upper}_PASSWORD_OLD")
    [ -z "$old" ] || hashes="$hashes #$(hash_of "$old")"
    text=$(printf '%s\n' "$text" | sed "s/@$user@/$hashes/")
  done
  printf '%s\n' "$text" >"$folder/redis-$role/.users.acl"
  mv "$folder/redis-$role/.users.acl" "$folder/redis-$role/users.acl"
done

# Passwords, each in a folder of its own, which one kind of container mounts. The folder above keeps others of this machine
# out; containers read them as another user.
mkdir -p "$folder/private"
chmod 700 "$folder/private"
# password_file FOLDER VARIABLE
password_file() {
  mkdir -p "$folder/private/$1"
  value "$2" >"$folder/private/$1/.password"
  mv "$folder/private/$1/.password" "$folder/private/$1/password"
}
for user in controller evaluator inference opponents optimizer play rollout probe admin; do
  password_file "redis/$user" "FIVE_$(echo "$user" | tr a-z A-Z)_PASSWORD"
done
password_file grafana GRAFANA_PASSWORD

# The secret of each caller, in such a folder too, and the hashes by which servers know the callers.
mkdir -p "$folder/callers"
for caller in controller evaluator play rollout; do
  secret=FIVE_$(echo "$caller" | tr a-z A-Z)_SECRET
  mkdir -p "$folder/private/callers/$caller"
  value "$secret" >"$folder/private/callers/$caller/.secret"
  mv "$folder/private/callers/$caller/.secret" "$folder/private/callers/$caller/secret"
  echo "$caller $(value "$secret") $(value "${secret}_ALSO" | tr , ' ')"
done | "$here/deploy/compose/callers-json.sh" >"$folder/callers/.callers.json"
mv "$folder/callers/.callers.json" "$folder/callers/callers.json"

# Tokens that were made since, with `five token`, stay.
tokens=$folder/controller/tokens.json
if [ ! -e "$tokens" ]; then
  cat >"$folder/controller/.tokens.json" <<END
[
  {"name": "operator", "role": "operator", "sha256": "$(hash_of "$(value FIVE_OPERATOR_TOKEN)")"},
  {"name": "viewer", "role": "viewer", "sha256": "$(hash_of "$(value FIVE_VIEWER_TOKEN)")"}
]
END
  mv "$folder/controller/.tokens.json" "$tokens"
fi
