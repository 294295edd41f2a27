#!/bin/sh
# Redis reads its certificates when it starts and at CONFIG SET. This does the latter when their files change: no restart,
# and no connection is lost.
#
#   certificates.sh watch    beside it in its pod, as that user: looks every SECONDS_BETWEEN (10), again where Redis refused
#   certificates.sh alive    whether watch has looked within the last minute, for its liveness
#
# redis-start.sh creates the user and its password: RUN, a folder in memory, has the password and the socket by which watch
# asks. TLS, RUN: folders; REDIS_CLI: command.
set -eu
tls=${TLS:-/etc/five-redis/tls}
run=${RUN:-/run/five-redis}

# Print the current checksums; nothing while a file is missing, as during a replacement.
stamp() { sha256sum "$tls/tls.crt" "$tls/tls.key" "$tls/ca.crt" 2>/dev/null || true; }

case ${1:-} in
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
  sed -n '2,9p' "$0"
  exit 2
  ;;
esac
