#!/usr/bin/env bash
# Puts kustomize components of k8s/components over what helm has rendered; their names are the arguments:
#   helm upgrade --install five charts -n five --post-renderer ... --post-renderer-args spot-rollouts
# So helm goes on owning the release: its secrets stay, and upgrade, rollback and uninstall work as ever.
set -euo pipefail
components=$(cd "$(dirname "$(readlink -f "$0")")/../components" && pwd)
KUBECTL=${KUBECTL:-kubectl}

command -v "$KUBECTL" >/dev/null || { echo "kustomize.sh: kubectl is needed; set KUBECTL=/path/to/kubectl" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/five.yaml"
{
  echo "apiVersion: kustomize.config.k8s.io/v1beta1"
  echo "kind: Kustomization"
  echo "resources: [five.yaml]"
  echo "components:"
  for name in "$@"; do
    [ -d "$components/$name" ] || {
      echo "kustomize.sh: there is no component '$name'; there is: $(cd "$components" && echo *)" >&2
      exit 1
    }
    cp -r "$components/$name" "$work/$name"
    echo "  - $name"
  done
} > "$work/kustomization.yaml"
"$KUBECTL" kustomize "$work"
