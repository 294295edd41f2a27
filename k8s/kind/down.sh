#!/usr/bin/env bash
# Removes the kind cluster that up.sh made, with everything in it, the run's volumes included.
set -euo pipefail
CLUSTER=${CLUSTER:-five}
command -v kind >/dev/null || { echo "kind/down.sh: kind is needed" >&2; exit 1; }
kind delete cluster --name "$CLUSTER"
