#!/bin/sh
# Start redis-server. The chart gives the users' rights (CONF/rules.acl), the Secret the hashes of their passwords
# (USERS/users.acl). Rights in the Secret are ignored: a Secret made by an earlier release would keep old ones. A user
# without a password is off. Users that only the Secret has keep their line. With TLS one more user may set certificates
# (certificates.sh): its password is generated at each start and stays in the pod.
#
# CONF, USERS, TLS, RUN: folders, RUN in memory; REDIS_SERVER: command.
set -eu
conf=${CONF:-/etc/five-redis/conf}
users=${USERS:-/etc/five-redis/users}
tls=${TLS:-/etc/five-redis/tls}
run=${RUN:-/run/five-redis}

umask 077
[ -s "$users/users.acl" ] || { echo "redis-start: $users/users.acl has no users: see charts/README.md, Secrets" >&2; exit 1; }
awk '
  $1 != "user" { next }
  FNR == NR {
    hashes = ""
    for (i = 3; i <= NF; i++) if ($i ~ /^[#>]/) hashes = hashes " " $i
    passwords[$2] = hashes
    lines[$2] = $0
    next
  }
  {
    known[$2] = 1
    if ($3 == "@" $2 "@") $3 = (passwords[$2] == "") ? "off" : "on" passwords[$2]
    print
  }
  END { for (user in lines) if (!(user in known)) print lines[user] }
' "$users/users.acl" "$conf/rules.acl" >"$run/users.acl"
if [ -d "$tls" ]; then
  head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$run/.password"
  mv "$run/.password" "$run/password"
  printf 'user certificates on #%s resetchannels -@all +config|set\n' "$(sha256sum <"$run/password" | cut -c1-64)" \
    >>"$run/users.acl"
fi
exec "${REDIS_SERVER:-redis-server}" "$conf/redis.conf"
