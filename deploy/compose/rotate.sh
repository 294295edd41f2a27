#!/bin/sh
# Rotate secrets during a run:
#
#   deploy/compose/rotate.sh rollout [optimizer ...]    Redis passwords: of a component, admin or probe
#   deploy/compose/rotate.sh token                      secrets of calls between services; token:rollout: one caller's
#
# The new secret is accepted in addition to the old one, the containers reread its file, then the old one is revoked. No
# container is replaced. Run the command again to finish an interrupted rotation. REST API tokens are changed in
# tokens.json, which the controller rereads by itself: docs/operations.md.
#
# ENV_FILE (.env) is make-env.sh's file; COMPOSE is the command with its files and project (docker compose).
set -eu
cd "$(dirname "$0")/../.."
env_file=${ENV_FILE:-.env}
compose=${COMPOSE:-docker compose}
[ $# -gt 0 ] || { sed -n '2,12p' "$0"; exit 2; }
[ -f "$env_file" ] || { echo "rotate: there is no $env_file; \`make env\` writes it" >&2; exit 2; }

umask 077  # copies of the file hold its secrets
value() { sed -n "s/^$1=//p" "$env_file" | tail -n 1; }
fresh() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
hash_of() { printf %s "$1" | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-64; }

# set_values NAME=VALUE ...: replaces lines of the file, an empty value takes one out. Written beside, then renamed.
set_values() {
  beside=$env_file.new.$$
  cat "$env_file" >"$beside"
  for pair; do
    name=${pair%%=*}
    grep -v "^$name=" "$beside" >"$beside.part" || true
    [ -z "${pair#*=}" ] || printf '%s\n' "$pair" >>"$beside.part"
    cat "$beside.part" >"$beside"
    rm -f "$beside.part"
  done
  mv "$beside" "$env_file"
}

# ask STORE COMMAND...: lines of commands for a Redis, as its admin. The password goes by standard input: a command line
# can be read by everybody on the machine.
ask() {
  store=$1
  shift
  answer=$( { printf 'AUTH admin %s\n' "$(value FIVE_ADMIN_PASSWORD)"; printf '%s\n' "$@"; } \
    | $compose --env-file "$env_file" exec -T "$store" redis-cli)
  if printf '%s\n' "$answer" | grep -qvE '^(OK|[0-9]+|)$'; then
    echo "rotate: $store refuses: $(printf '%s\n' "$answer" | grep -vE '^(OK|[0-9]+|)$' | head -n 1)" >&2
    exit 1
  fi
}

password() {
  user=$1
  upper=$(echo "$user" | tr a-z A-Z)
  current=FIVE_${upper}_PASSWORD
  stores=$(grep -l "^user $user " charts/files/users-state.acl charts/files/users-params.acl 2>/dev/null \
    | sed 's|.*users-\(.*\)\.acl|redis-\1|')
  [ -n "$stores" ] || { echo "rotate: $user has no user in Redis" >&2; exit 2; }
  if [ -z "$(value "${current}_OLD")" ]; then
    new=$(fresh)
    # The admin lets the new one in before the file says so: with the file alone it could not get in any more.
    for store in $stores; do ask "$store" "ACL SETUSER $user #$(hash_of "$new")"; done
    set_values "${current}_OLD=$(value "$current")" "$current=$new"
    deploy/compose/make-env.sh "$env_file" >/dev/null
  else
    echo "rotate: goes on with the change of $user's password that was begun"
    for store in $stores; do ask "$store" "ACL SETUSER $user #$(hash_of "$(value "$current")")"; done
    deploy/compose/make-env.sh "$env_file" >/dev/null
  fi
  sleep "${PAUSE:-1}"  # a mounted file may change late
  # Clients connected with the old password stay connected until they are killed; they reconnect at once with the file's.
  for store in $stores; do
    ask "$store" "ACL SETUSER $user resetpass #$(hash_of "$(value "$current")")"
    [ "$user" = admin ] || ask "$store" "CLIENT KILL USER $user"
  done
  set_values "${current}_OLD="
  deploy/compose/make-env.sh "$env_file" >/dev/null
  echo "rotate: $user has a new password, and the old one is refused"
}

# secrets CALLER...: no container is replaced, they reread their files. After a rotation that broke off, every secret that
# may still be sent is accepted until this one is done.
secrets() {
  accepted= sent= done=
  for caller; do
    name=FIVE_$(echo "$caller" | tr a-z A-Z)_SECRET
    old=$(value "$name")
    also=$(value "${name}_ALSO")
    [ -z "$also" ] || echo "rotate: a rotation of $caller's secret broke off; a new one begins"
    new=$(fresh)
    accepted="$accepted ${name}_ALSO=${also:+$also,}$new"
    sent="$sent $name=$new ${name}_ALSO=${also:+$also,}$old"
    done="$done ${name}_ALSO="
  done
  for values in "$accepted" "$sent" "$done"; do
    # shellcheck disable=SC2086 # NAME=VALUE pairs without spaces
    set_values $values
    deploy/compose/make-env.sh "$env_file" >/dev/null
    sleep "${PAUSE:-5}"  # a process looks once a second
  done
  echo "rotate: new secrets of $*, and the old ones are refused"
}

for what; do
  case $what in
    token) secrets controller evaluator play rollout ;;
    token:controller | token:evaluator | token:play | token:rollout) secrets "${what#token:}" ;;
    controller | evaluator | inference | opponents | optimizer | play | rollout | probe | admin) password "$what" ;;
    *) echo "rotate: $what has no secret; there are controller, evaluator, inference, opponents, optimizer, play, rollout," \
      "probe, admin, token and token:CALLER, of the controller, evaluator, play and rollout" >&2; exit 2 ;;
  esac
done
