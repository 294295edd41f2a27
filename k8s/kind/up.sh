#!/usr/bin/env bash
# Five on a Kubernetes cluster inside Docker on this machine (kind). The images are built here and loaded into the nodes:
# no image registry is used. Run it again after a change: it builds, loads and upgrades.
#   k8s/kind/up.sh                                 # the laptop's values
#   k8s/kind/up.sh -f my-run.yaml --set ...        # arguments go to helm
# Variables: CLUSTER, RELEASE and NAMESPACE (five); VALUES (charts/values-laptop.yaml); BUILD=0 takes the images that
# the values name; NODE_IMAGE is kind's node image; TIMEOUT (10m).
set -euo pipefail
cd "$(dirname "$0")/../.."
CLUSTER=${CLUSTER:-five}
RELEASE=${RELEASE:-five}
NAMESPACE=${NAMESPACE:-five}
VALUES=${VALUES:-charts/values-laptop.yaml}
BUILD=${BUILD:-1}
TIMEOUT=${TIMEOUT:-10m}

say() { echo "kind/up.sh: $*"; }
die() { echo "kind/up.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is needed: $2"; }

need docker "https://docs.docker.com/engine/install"
need kind "https://kind.sigs.k8s.io/docs/user/quick-start (0.24 or newer, whose network enforces NetworkPolicies)"
need kubectl "https://kubernetes.io/docs/tasks/tools"
need helm "https://helm.sh/docs/intro/install (3.12 or newer)"
docker info >/dev/null 2>&1 || die "the Docker engine does not answer; start it, or join the group 'docker'"

# A tag for each content, so that pods restart when their image changed.
if [ "$BUILD" != 0 ]; then
  tag=$(make --no-print-directory image-tag) || die "the images have no tag; the reason is above"
  set -- --set-string "global.image.tag=$tag" "$@"
fi

render() {
  helm template "$RELEASE" charts --namespace "$NAMESPACE" -f "$VALUES" "$@"
}
manifests=$(render "$@") || die "the chart does not render; the reason is above"
images=()  # macOS's bash has no mapfile
while IFS= read -r image; do images+=("$image"); done < <(sed -n 's/^ *\(- \)\{0,1\}image: *"\{0,1\}\([^" ]*\)"\{0,1\} *$/\2/p' <<<"$manifests" | sort -u)
[ "${#images[@]}" -gt 0 ] || die "the rendered chart names no image"

if [ "$BUILD" != 0 ]; then
  say "building the images"
  make --no-print-directory images || die "the images cannot be built; the reason is above"
fi
for image in "${images[@]}"; do
  docker image inspect "$image" >/dev/null 2>&1 || docker pull "$image" ||
    die "image $image is neither on this machine nor can it be pulled; build it (make images, for GPUs with FLAVOUR=cuda) or docker load it"
done

if ! kind get clusters 2>/dev/null | grep -qx "$CLUSTER"; then
  say "making cluster $CLUSTER"
  kind create cluster --name "$CLUSTER" --config k8s/kind/cluster.yaml ${NODE_IMAGE:+--image "$NODE_IMAGE"} --wait 120s ||
    die "the cluster does not start; see above, and https://kind.sigs.k8s.io/docs/user/known-issues"
fi
say "loading ${#images[@]} images into the nodes"
for image in "${images[@]}"; do
  kind load docker-image --name "$CLUSTER" "$image" || die "image $image cannot be loaded into cluster $CLUSTER"
done

context=kind-$CLUSTER
kubectl --context "$context" apply -f k8s/priority-classes.yaml
say "installing release $RELEASE in namespace $NAMESPACE"
if ! helm upgrade --install "$RELEASE" charts --kube-context "$context" --namespace "$NAMESPACE" --create-namespace \
    -f "$VALUES" "$@" --wait --timeout "$TIMEOUT"; then
  kubectl --context "$context" --namespace "$NAMESPACE" get pods >&2 || true
  kubectl --context "$context" --namespace "$NAMESPACE" get events --sort-by=.lastTimestamp 2>/dev/null | tail -20 >&2
  die "the release did not become ready within $TIMEOUT; the pods and the newest events are above"
fi
say "up. helm printed the next steps above; useful commands:"
say "  helm test $RELEASE -n $NAMESPACE --kube-context $context"
say "  kubectl --context $context -n $NAMESPACE get pods"
say "  k8s/kind/down.sh"
