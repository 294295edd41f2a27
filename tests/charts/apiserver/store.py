"""Object store of the cluster, and every write operation on it."""

import base64
import copy
import re
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.charts.apiserver import fields, rules
from tests.charts.apiserver.kinds import KINDS, Kind, Object

Key = tuple[str, str, str]  # resource, namespace, name


class Refused(Exception):
    """Error response of the API: code, reason and message of a Status."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                               "message": message, "reason": reason, "details": details or {}, "code": code}


@dataclass
class Stored:
    """Object with its field owners."""

    value: Object
    owners: list[fields.Owner] = field(default_factory=list)


@dataclass(frozen=True)
class Writer:
    """Field manager of a request, and its kind of write."""

    manager: str
    dry_run: bool = False
    force: bool = False


class Store:
    """Store of the cluster's objects. Not thread-safe: callers hold the lock `changed`."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.objects: dict[Key, Stored] = {}
        # (verb, resource, name) of every write, dry runs excluded.
        self.writes: list[tuple[str, str, str]] = []
        # For watches: resource version, kind of event, resource, the object.
        self.events: list[tuple[int, str, str, Object]] = []
        self.version = 100
        for name in ("default", "kube-system"):
            self.create_namespace(name, Writer("test"))
        self.writes.clear()

    def create_namespace(self, name: str, writer: Writer) -> None:
        """Create a namespace. Raises Refused."""
        o = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.create(_kind("Namespace"), "", o, writer)

    def get(self, kind: Kind, namespace: str, name: str) -> Stored:
        """Return one object. Raises Refused (404)."""
        try:
            return self.objects[kind.resource, namespace, name]
        except KeyError:
            raise Refused(404, "NotFound", f'{kind.resource} "{name}" not found',
                          {"name": name, "group": kind.group, "kind": kind.plural}) from None

    def listed(self, kind: Kind, namespace: str, labels: str = "", fields_: str = "") -> list[Object]:
        """Return the objects that match a label and a field selector, in one namespace or (empty) in all."""
        return [s.value for (resource, ns, _), s in self.objects.items()
                if resource == kind.resource and namespace in ("", ns) and selected(s.value, labels, fields_)]

    def create(self, kind: Kind, namespace: str, o: Object, writer: Writer) -> Object:
        """Handle POST. Raises Refused."""
        name = o["metadata"]["name"]
        if (kind.resource, namespace, name) in self.objects:
            raise Refused(409, "AlreadyExists", f'{kind.resource} "{name}" already exists',
                          {"name": name, "group": kind.group, "kind": kind.plural})
        stored = Stored({})
        return self._write(kind, namespace, name, stored, o, writer, "create", "")

    def update(self, kind: Kind, namespace: str, name: str, o: Object, writer: Writer) -> Object:
        """Handle PUT. Raises Refused."""
        stored = self.get(kind, namespace, name)
        return self._write(kind, namespace, name, stored, o, writer, "update", "")

    def patch(self, kind: Kind, namespace: str, name: str, patch: Any, how: str, writer: Writer) -> Object:
        """Handle PATCH by its content type. Raises Refused."""
        if how == "application/apply-patch+yaml":
            return self._apply(kind, namespace, name, patch, writer)
        stored = self.get(kind, namespace, name)
        if how == "application/strategic-merge-patch+json" and (
                "." not in kind.group or kind.group.endswith(".k8s.io")):
            result = fields.strategic_merge(kind.name, stored.value, patch)
        elif how == "application/merge-patch+json":
            result = fields.json_merge(stored.value, patch)
        elif how == "application/json-patch+json":
            result = fields.json_patch(stored.value, patch)
        else:
            raise Refused(415, "UnsupportedMediaType", f"the body of the request was in an unknown format - {how}")
        return self._write(kind, namespace, name, stored, result, writer, "patch", "")

    def scale(self, kind: Kind, namespace: str, name: str, given: Object, writer: Writer) -> None:
        """Handle the scale subresource, which kubectl scale and autoscalers write. Raises Refused."""
        stored = self.get(kind, namespace, name)
        version = given.get("metadata", {}).get("resourceVersion", "")
        o = {**stored.value, "spec": {**stored.value["spec"], "replicas": given["spec"]["replicas"]},
             "metadata": {**stored.value["metadata"], "resourceVersion": version}}
        self._write(kind, namespace, name, stored, o, writer, "patch", "scale")

    def delete(self, kind: Kind, namespace: str, name: str, writer: Writer) -> Object:
        """Handle DELETE, including dependants of the object. Raises Refused."""
        gone = self.get(kind, namespace, name).value
        if not writer.dry_run:
            del self.objects[kind.resource, namespace, name]
            self.writes.append(("delete", kind.resource, name))
            self._event("DELETED", kind, gone)
            if kind.name == "StatefulSet" and gone["spec"]["persistentVolumeClaimRetentionPolicy"][
                    "whenDeleted"] == "Delete":
                for claim in claims(gone):
                    self.objects.pop((claim["kind"].lower() + "s", namespace, claim["metadata"]["name"]), None)
        return gone

    def _apply(self, kind: Kind, namespace: str, name: str, config: Object, writer: Writer) -> Object:
        stored = self.objects.get((kind.resource, namespace, name)) or Stored({})
        owners = copy.deepcopy(stored.owners)
        try:
            result = fields.apply(kind.name, stored.value, copy.deepcopy(config), owners, writer.manager, writer.force)
        except fields.Conflict as e:
            raise Refused(409, "Conflict", str(e), {"name": name, "group": kind.group, "kind": kind.plural,
                                                    "causes": [{"reason": "FieldManagerConflict"}]}) from None
        except ValueError as e:
            raise Refused(500, "InternalError", f"failed to create typed patch object ({namespace}/{name}; "
                          f"{kind.api}, Kind={kind.name}): {e}") from None
        return self._write(kind, namespace, name, stored, result, writer, "apply", "", owners)

    def _write(self, kind: Kind, namespace: str, name: str, stored: Stored, o: Object, writer: Writer, verb: str,
               sub: str, owners: list[fields.Owner] | None = None) -> Object:
        before = stored.value or None
        asked = o["metadata"].get("resourceVersion")
        if before and asked and asked != before["metadata"]["resourceVersion"]:
            raise Refused(409, "Conflict", f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has '
                          "been modified; please apply your changes to the latest version and try again")
        o = self._identified(kind, namespace, name, before, copy.deepcopy(o))
        try:
            rules.fill_in(kind, o, self.version)
            if before is None:
                rules.check_new(kind, o)
            else:
                rules.check_change(kind, before, o)
        except rules.Invalid as e:
            raise Refused(422, "Invalid", f'{kind.title} "{name}" is invalid: {e}',
                          {"name": name, "group": kind.group, "kind": kind.name}) from None
        if owners is None:
            shown = o["metadata"].get("managedFields")
            if before and shown and shown != before["metadata"]["managedFields"]:
                owners = [fields.Owner.of(entry) for entry in shown]
            else:
                owners = copy.deepcopy(stored.owners)
            fields.updated(kind.name, before, o, owners, writer.manager, sub)
        o["metadata"]["managedFields"] = [owner.entry() for owner in owners]
        if before == o:
            return before
        self.version += 1
        o["metadata"]["resourceVersion"] = str(self.version)
        if writer.dry_run:
            return o
        stored.value, stored.owners = o, owners
        self.objects[kind.resource, namespace, name] = stored
        self.writes.append((verb, kind.resource, name))
        self._event("MODIFIED" if before else "ADDED", kind, o)
        if kind.name == "StatefulSet":
            for claim in claims(o):
                if ("persistentvolumeclaims", namespace, claim["metadata"]["name"]) not in self.objects:
                    self.create(_kind("PersistentVolumeClaim"), namespace, claim, Writer("kube-controller-manager"))
        return o

    def _identified(self, kind: Kind, namespace: str, name: str, before: Object | None, o: Object) -> Object:
        metadata = o["metadata"]
        if (o["apiVersion"], o["kind"]) != (kind.api, kind.name) or metadata.get("name") != name:
            raise Refused(400, "BadRequest", f"{o['apiVersion']} {o['kind']} {metadata.get('name')} is not {name}")
        if kind.namespaced:
            if metadata.setdefault("namespace", namespace) != namespace:
                raise Refused(400, "BadRequest", "the namespace of the provided object does not match the namespace "
                              "sent on the request")
            self.get(_kind("Namespace"), "", namespace)
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) or len(name) > 253:
            raise Refused(422, "Invalid", f'{kind.title} "{name}" is invalid: metadata.name: Invalid value: "{name}": '
                          "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters")
        kept = (before or {}).get("metadata") or {"uid": str(uuid.uuid4()), "creationTimestamp": fields.CREATED}
        metadata.update({k: kept[k] for k in ("uid", "creationTimestamp", "resourceVersion") if k in kept})
        if kind.name == "Secret":
            given = {k: base64.b64encode(v.encode()).decode() for k, v in o.pop("stringData", {}).items()}
            if given:
                o["data"] = {**o.get("data", {}), **given}
        return o

    def _event(self, what: str, kind: Kind, o: Object) -> None:
        self.events.append((self.version, what, kind.resource, o))


def _kind(name: str) -> Kind:
    return next(k for k in KINDS if k.name == name)


def claims(statefulset: Object) -> list[Object]:
    """Return the volume claims of a StatefulSet's pods."""
    metadata, spec = statefulset["metadata"], statefulset["spec"]
    return [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": copy.deepcopy(t["spec"]), "metadata": {
                "name": f"{t['metadata']['name']}-{metadata['name']}-{i}", "namespace": metadata["namespace"],
                "labels": {**t["metadata"].get("labels", {}), **spec["selector"]["matchLabels"]}}}
            for i in range(spec["replicas"]) for t in spec.get("volumeClaimTemplates", [])]


def selected(o: Object, labels: str, fields_: str) -> bool:
    """Return whether an object matches a label and a field selector. Raises Refused (400)."""
    own = o["metadata"].get("labels", {})
    for term in re.findall(r"[^,(]+(?:\([^)]*\))?", labels):
        if found := re.fullmatch(r"\s*(\S+) (in|notin) \(([^)]*)\)", term):
            if (own.get(found[1]) in re.split(r",\s*", found[3])) != (found[2] == "in"):
                return False
        elif found := re.fullmatch(r"\s*([^!=\s]+)\s*(==?|!=)\s*([^!=\s]*)", term):
            if (own.get(found[1]) == found[3]) == (found[2] == "!="):
                return False
        elif (term.strip().lstrip("!") in own) == term.strip().startswith("!"):
            return False
    for term in filter(None, fields_.split(",")):
        path, _, value = term.partition("=")
        if path not in ("metadata.name", "metadata.namespace"):
            raise Refused(400, "BadRequest", f"field label not supported: {path}")
        if o["metadata"][path.partition(".")[2]] != value:
            return False
    return True
