#!/usr/bin/env bash
# Renders the chart to k8s/base/five.yaml, which the overlays build on:
#   k8s/render.sh -f charts/values-gpu-cluster.yaml -f my-run.yaml
#   kubectl apply --server-side -k k8s/overlays/cloud
# All arguments go to `helm template`. The release is called $RELEASE (five), in namespace $NAMESPACE (five).
set -euo pipefail
cd "$(dirname "$0")/.."
HELM=${HELM:-helm}
RELEASE=${RELEASE:-five}
NAMESPACE=${NAMESPACE:-five}

command -v "$HELM" >/dev/null || { echo "render.sh: helm is needed (3.12 or newer); set HELM=/path/to/helm" >&2; exit 1; }
mkdir -p k8s/base
beside=k8s/base/.five.yaml.$$
trap 'rm -f "$beside"' EXIT
# Without a cluster to look into, helm would draw new secrets at every rendering: they have to exist.
"$HELM" template "$RELEASE" charts --namespace "$NAMESPACE" --skip-tests --set secrets.create=false "$@" > "$beside"
mv "$beside" k8s/base/five.yaml
echo "k8s/base/five.yaml: $(grep -c '^kind:' k8s/base/five.yaml) objects; they need the Secrets of k8s/make-secrets.sh in namespace $NAMESPACE"
