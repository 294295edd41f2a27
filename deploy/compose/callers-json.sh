#!/bin/sh
# Prints callers.json, by which servers know their callers (libs/rapid/rpc/callers.py). Standard input has a line for each
# caller: its name and the secrets that are accepted from it, the one that it sends first.
set -eu
export LC_ALL=C
hash_of() { printf %s "$1" | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-64; }

callers=$(sort)
after=
printf '{'
for audience in dota_env evaluator inference opponents optimizer play; do
  printf '%s"%s":{' "$after" "$audience"
  after=,
  printf '%s\n' "$callers" | {
    before=
    while read -r caller secrets; do
      printf '%s"%s":[' "$before" "$caller"
      before=
      for secret in $secrets; do
        printf '%s"%s"' "$before" "$(hash_of "$(hash_of "five:$audience:$secret")")"
        before=,
      done
      printf ']'
      before=,
    done
  }
  printf '}'
done
printf '}'
