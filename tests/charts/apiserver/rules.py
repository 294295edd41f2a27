"""Defaulting and validation of the API server."""

import copy
import re
from typing import Any

from tests.charts.apiserver.kinds import Kind, Object

UNITS = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30,
         "Ti": 2.0**40}
STATEFULSET = ("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
               "persistentVolumeClaimRetentionPolicy", "minReadySeconds")


class Invalid(Exception):
    """Rejected fields of an object, with the reason for each."""


def quantity(value: object) -> float:
    """Parse a Kubernetes quantity."""
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(value))
    if found is None or found[2] not in UNITS:
        raise Invalid(f"quantities must match the regular expression: {value!r}")
    return float(found[1]) * UNITS[found[2]]


def fill_in(kind: Kind, o: Object, address: int) -> None:
    """Set the defaults that later changes are compared with."""
    spec = o.setdefault("spec", {}) if kind.name in ("Service", "PersistentVolumeClaim") else o.get("spec", {})
    if kind.scalable:
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        spec["template"].setdefault("spec", {}).setdefault("restartPolicy", "Always")
        _ports(spec["template"]["spec"])
    if kind.name == "Deployment":
        strategy = spec.setdefault("strategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            strategy.setdefault("rollingUpdate", {"maxSurge": "25%", "maxUnavailable": "25%"})
    elif kind.name == "StatefulSet":
        spec.setdefault("podManagementPolicy", "OrderedReady")
        spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
        spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
        for claim in spec.get("volumeClaimTemplates", []):
            claim.update({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}})
            claim["spec"].setdefault("volumeMode", "Filesystem")
    elif kind.name == "Service":
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("clusterIP", f"10.96.{address // 250}.{address % 250 + 1}")
        for port in spec.get("ports", []):
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port["port"])
    elif kind.name == "PersistentVolumeClaim":
        spec.setdefault("volumeMode", "Filesystem")
        spec.setdefault("storageClassName", "standard")
        spec.setdefault("volumeName", f"pvc-{o['metadata']['uid']}")
        o.setdefault("status", {"phase": "Bound", "capacity": dict(spec["resources"]["requests"])})
    elif kind.name == "Pod":
        spec.setdefault("restartPolicy", "Always")
        _ports(spec)
        # Nothing runs here: a client that waits for a test pod finds it Succeeded.
        o.setdefault("status", {"phase": "Succeeded"})
    elif kind.name == "Secret":
        o.setdefault("type", "Opaque")


def _ports(spec: Object) -> None:
    for container in spec.get("containers", []):
        for port in container.get("ports", []):
            port.setdefault("protocol", "TCP")


def check_new(kind: Kind, o: Object) -> None:
    """Validate a new object. Raises Invalid."""
    if kind.scalable:
        selected = o["spec"]["selector"]["matchLabels"]
        labels = o["spec"]["template"]["metadata"].get("labels", {})
        if not selected.items() <= labels.items():
            raise Invalid(f"spec.template.metadata.labels: Invalid value: {labels}: `selector` does not match template "
                          "`labels`")
        if o["spec"]["replicas"] < 0:
            raise Invalid(f"spec.replicas: Invalid value: {o['spec']['replicas']}: must be greater than or equal to 0")


def check_change(kind: Kind, before: Object, after: Object) -> None:
    """Validate a change against the object's immutable fields. Raises Invalid."""
    old, new = before.get("spec") or {}, after.get("spec") or {}
    check_new(kind, after)
    if kind.name == "StatefulSet" and _sized(_without(old, STATEFULSET)) != _sized(_without(new, STATEFULSET)):
        named = ", ".join(f"'{f}'" for f in STATEFULSET[:-1])
        raise Invalid(f"spec: Forbidden: updates to statefulset spec for fields other than {named} and "
                      f"'{STATEFULSET[-1]}' are forbidden")
    if kind.name == "Deployment" and old["selector"] != new["selector"]:
        raise Invalid(f"spec.selector: Invalid value: {new['selector']}: field is immutable")
    if kind.name == "Service" and old["clusterIP"] != new.get("clusterIP"):
        raise Invalid(f"spec.clusterIPs[0]: Invalid value: [\"{new.get('clusterIP')}\"]: may not change once set")
    if kind.name == "PersistentVolumeClaim":
        _claim(old, new)
    if kind.name == "Secret":
        if before["type"] != after["type"]:
            raise Invalid(f"type: Invalid value: \"{after['type']}\": field is immutable")
        if before.get("immutable") and (before.get("data") != after.get("data") or not after.get("immutable")):
            raise Invalid("data: Forbidden: field is immutable when `immutable` is set")
    if kind.name == "RoleBinding" and before["roleRef"] != after["roleRef"]:
        raise Invalid("roleRef: Invalid value: cannot change roleRef")
    if kind.name == "Pod" and _without(old, ("activeDeadlineSeconds", "tolerations")) != _without(
            new, ("activeDeadlineSeconds", "tolerations")):
        raise Invalid("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
                      "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions "
                      "to existing tolerations)")


def _claim(old: Object, new: Object) -> None:
    if _without(old, ("resources",)) != _without(new, ("resources",)):
        raise Invalid("spec: Forbidden: spec is immutable after creation except resources.requests and "
                      "volumeAttributesClassName for bound claims")
    if quantity(new["resources"]["requests"]["storage"]) < quantity(old["resources"]["requests"]["storage"]):
        raise Invalid("spec.resources.requests.storage: Forbidden: field can not be less than status.capacity")


def _sized(spec: Object) -> Object:
    """Return the spec with sizes as numbers: the server treats 1Gi and 1024Mi as equal."""
    same = copy.deepcopy(spec)
    for claim in same.get("volumeClaimTemplates", []):
        requests = claim["spec"]["resources"]["requests"]
        requests["storage"] = quantity(requests["storage"])
    return same


def _without(o: Object, names: tuple[str, ...]) -> dict[str, Any]:
    return {k: v for k, v in o.items() if k not in names}
