#!/bin/sh
# Keep Redis serving while its clients drain, as the preStop hook: `redis-stop.sh SECONDS [argument of redis-cli ...]`.
#
# In a drain of a node and in an uninstall all pods get SIGTERM at once, and clients store their last work in Redis.
# The hook ends when all clients have disconnected, or after SECONDS.
#
# PROBE: folder with the probe's password; REDIS_CLI: command.
set -eu
probe=${PROBE:-/etc/five-redis/probe}
end=$(($(date +%s) + $1))
shift
empty=0
while [ "$empty" -lt 2 ] && [ "$(date +%s)" -lt "$end" ]; do
  # This connection counts too. A server that does not respond has no clients to wait for.
  clients=$(REDISCLI_AUTH=$(cat "$probe/password") "${REDIS_CLI:-redis-cli}" --user probe --no-auth-warning "$@" info clients 2>/dev/null |
    sed -n 's/^connected_clients:\([0-9]*\).*/\1/p')
  if [ "${clients:-0}" -le 1 ]; then empty=$((empty + 1)); else empty=0; fi
  sleep 1
done
