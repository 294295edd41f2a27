"""Resource kinds that the server knows, and their discovery documents."""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True)
class Kind:
    """Resource type of the API."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    scalable: bool = False

    @property
    def api(self) -> str:
        """apiVersion of the kind's objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Name in API error messages: deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def title(self) -> str:
        """Name in validation messages: Deployment.apps."""
        return f"{self.name}.{self.group}" if self.group else self.name


KINDS = [
    Kind("", "v1", "Namespace", "namespaces", namespaced=False),
    *(Kind("", "v1", name, name.lower() + "s") for name in ("ConfigMap", "PersistentVolumeClaim", "Pod", "Secret",
                                                            "Service", "ServiceAccount")),
    Kind("apps", "v1", "Deployment", "deployments", scalable=True),
    Kind("apps", "v1", "StatefulSet", "statefulsets", scalable=True),
    Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    Kind("networking.k8s.io", "v1", "Ingress", "ingresses"),
    Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Kind("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    *(Kind("monitoring.coreos.com", "v1", name, name.lower() + "s") for name in ("ServiceMonitor", "PodMonitor",
                                                                                 "PrometheusRule")),
    Kind("cert-manager.io", "v1", "Certificate", "certificates"),
]
PODS = {"Pod", "Deployment", "StatefulSet"}
# Merge keys of the lists in a pod. Lists without a key are atomic.
IN_PODS = {
    "containers": ("name",), "initContainers": ("name",), "env": ("name",), "volumes": ("name",),
    "imagePullSecrets": ("name",), "volumeMounts": ("mountPath",), "ports": ("containerPort", "protocol"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"), "hostAliases": ("ip",),
}
# Maps that are replaced as a whole.
ATOMIC = {"selector", "nodeSelector", "secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "roleRef",
          "labelSelector", "podSelector", "namespaceSelector"}


def list_keys(kind: str, field: str) -> tuple[str, ...]:
    """Return the keys that identify items of a list field; empty when the list is atomic."""
    if field == "ownerReferences":
        return ("uid",)
    if kind in PODS:
        return IN_PODS.get(field, ())
    return {("Service", "ports"): ("port", "protocol"), ("PrometheusRule", "groups"): ("name",)}.get((kind, field), ())


def find(group: str, version: str, plural: str) -> Kind | None:
    """Return the kind that a URL names, or None."""
    return next((k for k in KINDS if (k.group, k.version, k.plural) == (group, version, plural)), None)


def discovery(core: bool) -> Object:
    """Return the aggregated discovery document (apidiscovery.k8s.io/v2) of /api or /apis."""
    groups: dict[tuple[str, str], list[Object]] = {}
    for kind in KINDS:
        if core == (not kind.group):
            entry: Object = {
                "resource": kind.plural, "singularResource": kind.name.lower(), "verbs": VERBS,
                "shortNames": ["pvc"] if kind.name == "PersistentVolumeClaim" else [],
                "scope": "Namespaced" if kind.namespaced else "Cluster",
                "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.name}}
            if kind.scalable:
                entry["subresources"] = [{
                    "subresource": "scale", "verbs": ["get", "patch", "update"],
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}}]
            groups.setdefault((kind.group, kind.version), []).append(entry)
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [
        {"metadata": {"name": group}, "versions": [{"version": version, "resources": resources,
                                                    "freshness": "Current"}]}
        for (group, version), resources in groups.items()]}


def resources(of: str) -> Object:
    """Return the kinds of one group and version, as `lookup` in a template requests them."""
    here = [k for k in KINDS if folder(k) == of]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": here[0].api, "resources": [
        {"name": k.plural, "singularName": k.name.lower(), "namespaced": k.namespaced, "kind": k.name, "verbs": VERBS}
        for k in here]}


def openapi_paths() -> Object:
    """Return the index of OpenAPI documents."""
    return {"paths": {f: {"serverRelativeURL": f"/openapi/v3/{f}"} for f in FOLDERS}}


def folder(kind: Kind) -> str:
    """Return the URL path of a kind's group and version."""
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


FOLDERS = {folder(k) for k in KINDS}


def openapi(of: str) -> Object:
    """Return one OpenAPI document. Clients read from it whether the server validates fields."""
    asked = [{"name": name, "in": "query", "schema": {"type": "string"}}
             for name in ("dryRun", "fieldManager", "fieldValidation")]
    paths = {
        f"/{of}/{k.plural}/{{name}}": {"patch": {
            "parameters": asked, "responses": {"200": {"description": "OK"}}, "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {"group": k.group, "version": k.version, "kind": k.name}}}
        for k in KINDS if folder(k) == of}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": paths,
            "components": {"schemas": {}}}
