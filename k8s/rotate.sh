#!/bin/sh
# Rotate secrets of a release during a run:
#
#   k8s/rotate.sh rollout [optimizer ...]    Redis passwords: of a component, admin or probe
#   k8s/rotate.sh token                      secrets of calls between services; token:rollout: one caller's
#
# The new secret is accepted in addition to the old one, the pods that use it are replaced as in an upgrade (or reread their
# files), then the old one is revoked. Run the command again to finish an interrupted rotation. It handles Secrets with
# the chart's names and the chart's Redis. REST API tokens are changed in their Secret, which the controller rereads by
# itself: docs/operations.md.
#
# RELEASE (five) is the release's name, NAMESPACE (five) its namespace. Names begin as the chart's do: with RELEASE, and
# with RELEASE-five where RELEASE has no "five" in it; FULLNAME is fullnameOverride. KUBECTL (kubectl) is the command,
# TIMEOUT (20m) the time that a replacement may take.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
callers="controller evaluator play rollout"
release=${RELEASE:-five}
case $release in *five*) prefix=$release ;; *) prefix=$release-five ;; esac
prefix=${FULLNAME:-$prefix}
kubectl="${KUBECTL:-kubectl} -n ${NAMESPACE:-five}"
[ $# -gt 0 ] || { sed -n '2,14p' "$0"; exit 2; }
# Names of another release in the namespace may begin with this prefix, so objects are selected by the release's label.
instance=$($kubectl get deployment "$prefix-rollout" -o 'go-template={{index .metadata.labels "app.kubernetes.io/instance"}}')
selector=app.kubernetes.io/part-of=five,app.kubernetes.io/instance=$instance

fresh() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
hash_of() { printf %s "$1" | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-64; }

# read_key SECRET KEY: print its value; nothing if it is missing.
read_key() {
  $kubectl get secret "$prefix-$1" -o "go-template={{with index .data \"$2\"}}{{. | base64decode}}{{end}}"
}

# write_keys SECRET KEY VALUE ...: sets keys; '-' takes one out. By standard input: a command line can be read by others.
write_keys() {
  name=$1
  shift
  body=
  while [ $# -gt 0 ]; do
    if [ "$2" = - ]; then value=null; else value="\"$(printf %s "$2" | base64 | tr -d '\n')\""; fi
    body="$body${body:+, }\"$1\": $value"
    shift 2
  done
  printf '{"data": {%s}}' "$body" | $kubectl patch secret "$prefix-$name" --patch-file /dev/stdin >/dev/null
}

# ask ROLE COMMAND...: lines of commands for a Redis, as its admin.
ask() {
  role=$1
  shift
  [ "$role" = state ] && place=statefulset/$prefix-redis-state || place=deployment/$prefix-redis-params
  answer=$( { printf 'AUTH admin %s\n' "$(read_key redis-admin "$role-password")"; printf '%s\n' "$@"; } \
    | $kubectl exec -i "$place" -c redis -- \
      sh -c 'if [ -d /etc/five-redis/tls ]; then exec redis-cli --tls --cacert /etc/five-redis/tls/ca.crt; fi; exec redis-cli')
  if printf '%s\n' "$answer" | grep -qvE '^(OK|[0-9]+|)$'; then
    echo "rotate: redis-$role refuses: $(printf '%s\n' "$answer" | grep -vE '^(OK|[0-9]+|)$' | head -n 1)" >&2
    exit 1
  fi
}

# replace COMPONENT...: new pods, a few at a time, as the workloads' own strategy has it. A LeaderWorkerSet has no
# `rollout restart`, and some versions of its operator give the StatefulSets below it the component's label: its pods
# are deleted, as a group.
replace() {
  for component; do
    labels=$selector,app.kubernetes.io/component=$component
    workloads=$($kubectl get deployment,statefulset -o name -l "$labels,!leaderworkerset.sigs.k8s.io/name")
    for workload in $workloads; do
      $kubectl rollout restart "$workload"
      $kubectl rollout status "$workload" --timeout "${TIMEOUT:-20m}"
    done
    [ -n "$workloads" ] || $kubectl delete pods --timeout "${TIMEOUT:-20m}" -l "$labels"
  done
}

# users ROLE SED-EXPRESSION: changes the users' file, which a server reads when it starts.
users() { write_keys redis-users "$1.acl" "$(read_key redis-users "$1.acl" | sed "$2")"; }

password() {
  user=$1
  roles=
  for role in state params; do
    [ -z "$(read_key "redis-$user" "$role-password")" ] || roles="$roles $role"
  done
  [ -n "$roles" ] || { echo "rotate: Secret $prefix-redis-$user has no password" >&2; exit 2; }
  for role in $roles; do
    if [ -z "$(read_key "redis-$user" "$role-password-old")" ]; then
      new=$(fresh)
      ask "$role" "ACL SETUSER $user #$(hash_of "$new")"
      users "$role" "s/^user $user on /&#$(hash_of "$new") /"
      write_keys "redis-$user" "$role-password-old" "$(read_key "redis-$user" "$role-password")" "$role-password" "$new"
    else
      echo "rotate: goes on with the change of $user's password that was begun"
      ask "$role" "ACL SETUSER $user #$(hash_of "$(read_key "redis-$user" "$role-password")")"
    fi
  done
  case $user in
    admin) ;;
    probe) replace redis-state redis-params ;;
    *) replace "$user" ;;
  esac
  for role in $roles; do
    old=$(hash_of "$(read_key "redis-$user" "$role-password-old")")
    # Clients connected with the old password stay connected until they are killed; other clients reconnect at once.
    if [ "$user" = admin ]; then
      ask "$role" "ACL SETUSER $user !$old"
    else
      ask "$role" "ACL SETUSER $user !$old" "CLIENT KILL USER $user"
    fi
    users "$role" "/^user $user /s/ #$old//"
    write_keys "redis-$user" "$role-password-old" -
  done
  echo "rotate: $user has a new password, and the old one is refused"
}

# await FILE LABELS CONTENT: until FILE has the content in every container that mounts its folder, in pods with the labels.
# The kubelet takes a minute or two.
await() {
  want=$(hash_of "$3")
  mounts="{{range .items}}{{\$pod := .metadata.name}}{{range .spec.containers}}{{\$container := .name}}{{range .volumeMounts}}\
{{if eq .mountPath \"${1%/*}\"}}{{\$pod}} {{\$container}}{{\"\\n\"}}{{end}}{{end}}{{end}}{{end}}"
  asked="test \"\$($kubectl exec \"pod/\$1\" -c \"\$2\" -- sha256sum $1 2>/dev/null | cut -c1-64)\" = $want && echo \"\$1 \$2\""
  tries=0
  have=none
  while :; do
    places=$($kubectl get pods -o "go-template=$mounts" --field-selector status.phase=Running -l "$selector$2")
    # Those that have it are not asked again; of the others 16 at a time.
    have="$have
$(printf '%s\n' "$places" | grep -vxF "$have" | xargs -P 16 -L 1 sh -c "$asked || true" asked)"
    behind=$(printf '%s\n' "$places" | grep -vxF "$have" | tr '\n' ' ')
    [ -n "$(echo "$behind" | tr -d ' ')" ] || break
    tries=$((tries + 1))
    [ "$tries" -lt "${TRIES:-120}" ] || { echo "rotate: these have not got $1 yet, call it again: $behind" >&2; exit 1; }
    sleep "${PAUSE:-3}"
  done
  sleep "${PAUSE:-3}"  # a process looks once a second
}

# publish_callers: writes the hashes of all accepted secrets, and waits until every server has them.
publish_callers() {
  rows=$(for caller in $callers; do
    secret=$(read_key "caller-$caller" secret)
    [ -n "$secret" ] || { echo "rotate: Secret $prefix-caller-$caller has no secret" >&2; exit 2; }
    also=$(read_key "caller-$caller" secret-also)
    echo "$caller $secret $(echo "$also" | tr , ' ')"
  done)
  text=$(printf '%s\n' "$rows" | "$here/deploy/compose/callers-json.sh")
  [ "$(read_key callers callers.json)" = "$text" ] || write_keys callers callers.json "$text"
  await /etc/five/callers/callers.json "" "$text"
}

# secrets CALLER...: no pod is replaced, they reread their files. After a rotation that broke off, every secret that may
# still be sent is accepted until this one is done.
secrets() {
  for caller; do
    also=$(read_key "caller-$caller" secret-also)
    [ -z "$also" ] || echo "rotate: a rotation of $caller's secret broke off; a new one begins"
    write_keys "caller-$caller" secret-also "${also:+$also,}$(fresh)"
  done
  publish_callers
  for caller; do
    old=$(read_key "caller-$caller" secret)
    also=$(read_key "caller-$caller" secret-also)
    new=${also##*,}
    write_keys "caller-$caller" secret "$new" secret-also "${also%"$new"}$old"
  done
  for caller; do
    await /etc/five/caller/secret ",app.kubernetes.io/component=$caller" "$(read_key "caller-$caller" secret)"
  done
  for caller; do write_keys "caller-$caller" secret-also -; done
  publish_callers
  echo "rotate: new secrets of $*, and the old ones are refused"
}

for what; do
  case $what in
    # shellcheck disable=SC2086 # a list
    token) secrets $callers ;;
    token:controller | token:evaluator | token:play | token:rollout) secrets "${what#token:}" ;;
    controller | evaluator | inference | opponents | optimizer | play | rollout | probe | admin) password "$what" ;;
    *) echo "rotate: $what has no secret; there are controller, evaluator, inference, opponents, optimizer, play, rollout," \
      "probe, admin and token" >&2; exit 2 ;;
  esac
done
