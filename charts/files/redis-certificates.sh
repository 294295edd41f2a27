#!/bin/sh
# Redis reads its certificates when it starts. With TLS this has it read them again when their files change: no restart,
# and no connection is lost.
#
#   certificates.sh serve    redis-server, with one user more than the users' file has, who may set certificates
#   certificates.sh watch    beside it in its pod, as that user: looks every SECONDS_BETWEEN (10), again where Redis refused
#   certificates.sh alive    whether watch has looked within the last minute, for its liveness
#
# The user's password is drawn at each start, and known in the pod alone: RUN, a folder in memory, has it, the users' file
# and the socket by which watch asks. CONF, USERS, TLS, RUN: folders; REDIS_SERVER, REDIS_CLI: commands.
set -eu
conf=${CONF:-/etc/five-redis/conf}
users=${USERS:-/etc/five-redis/users}
tls=${TLS:-/etc/five-redis/tls}
run=${RUN:-/run/five-redis}

# Print the current checksums; nothing while a file is missing, as during a replacement.
stamp() { sha256sum "$tls/tls.crt" "$tls/tls.key" "$tls/ca.crt" 2>/dev/null || true; }

case ${1:-} in
serve)
  umask 077
  head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$run/.password"
  mv "$run/.password" "$run/password"
  {
    cat "$users/users.acl"
    printf 'user certificates on #%s resetchannels -@all +config|set\n' "$(sha256sum <"$run/password" | cut -c1-64)"
  } >"$run/users.acl"
  exec "${REDIS_SERVER:-redis-server}" "$conf/redis.conf"
  ;;
watch)
  # Every change is seen from here on; what came between the server's start and this one is set once more.
  seen=
  told=
  while :; do
    now=$(stamp)
    if [ "$(printf '%s\n' "$now" | wc -l)" -eq 3 ] && [ "$now" != "$seen" ]; then
      said=$(REDISCLI_AUTH=$(cat "$run/password") "${REDIS_CLI:-redis-cli}" -s "$run/redis.sock" --user certificates \
        --no-auth-warning config set tls-cert-file "$tls/tls.crt" tls-key-file "$tls/tls.key" \
        tls-ca-cert-file "$tls/ca.crt" 2>&1) || said="${said:-redis-cli failed}"
      if [ "$said" = OK ]; then
        seen=$now
        told=
        echo "certificates: Redis has read them"
      elif [ "$said" != "$told" ]; then
        told=$said
        echo "certificates: Redis keeps the previous files; retrying: $said" >&2
      fi
    fi
    touch "$run/looked"
    sleep "${SECONDS_BETWEEN:-10}"
  done
  ;;
alive)
  [ -n "$(find "$run" -name looked -mmin -1)" ]
  ;;
*)
  sed -n '2,10p' "$0"
  exit 2
  ;;
esac
