"""Field ownership (managedFields), and the merge strategies for a change to an object."""

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.charts.apiserver.kinds import ATOMIC, Object, list_keys

CREATED = "2026-01-01T00:00:00Z"
# Names of fields, and for an item of a list the pairs that tell it from the others.
Path = tuple[Any, ...]
SERVERS_OWN = {"namespace", "name", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
               "deletionTimestamp", "selfLink"}


class Conflict(Exception):
    """Applied fields that other field managers have set to different values."""


@dataclass
class Owner:
    """Field manager with the set of fields that it owns."""

    manager: str
    operation: str
    subresource: str
    api: str
    fields: set[Path] = field(default_factory=set)

    @classmethod
    def of(cls, entry: Object) -> "Owner":
        """Parse an entry of an object's managedFields."""
        found: set[Path] = set()

        def collect(tree: Object, path: Path) -> None:
            if path and (not tree or "." in tree):
                found.add(path)
            for named, below in tree.items():
                sort, _, rest = named.partition(":")
                if sort in ("f", "k"):
                    collect(below, (*path, rest if sort == "f" else tuple(json.loads(rest).items())))

        collect(entry["fieldsV1"], ())
        return cls(entry["manager"], entry["operation"], entry.get("subresource", ""), entry["apiVersion"], found)

    def entry(self) -> Object:
        """Return the entry for an object's managedFields."""
        tree: Object = {}
        for path in self.fields:
            here = tree
            for part in path:
                key = f"f:{part}" if isinstance(part, str) else "k:" + json.dumps(dict(part), separators=(",", ":"))
                here = here.setdefault(key, {})
            if not isinstance(path[-1], str):
                here["."] = {}
        shown = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api, "time": CREATED,
                 "fieldsType": "FieldsV1", "fieldsV1": tree}
        return {**shown, "subresource": self.subresource} if self.subresource else shown

    def __str__(self) -> str:
        where = f' with subresource "{self.subresource}"' if self.subresource else ""
        return f'"{self.manager}"{where} using {self.api}'


def item_key(keys: tuple[str, ...], item: Object) -> Path:
    """Return the key that identifies an item of a list. Raises KeyError when the item lacks it."""
    return tuple((k, item.get(k, "TCP") if k == "protocol" else item[k]) for k in keys)


def leaves(kind: str, o: Object | None, strict: bool = False) -> dict[Path, Any]:
    """Return {path: value} of every field that can be owned. Raises ValueError for duplicate item keys when ``strict``.
    """
    found: dict[Path, Any] = {}
    for name, value in (o or {}).items():
        if name == "metadata":
            value = {k: v for k, v in value.items() if k not in SERVERS_OWN}
        if name not in ("apiVersion", "kind", "status"):
            _collect(kind, name, value, (name,), found, strict)
    return found


def _collect(kind: str, name: str, value: Any, path: Path, found: dict[Path, Any], strict: bool) -> None:
    keys = list_keys(kind, name) if isinstance(value, list) else ()
    if isinstance(value, dict) and value and name not in ATOMIC:
        for k, v in value.items():
            _collect(kind, k, v, (*path, k), found, strict)
    elif keys:
        for item in value:
            at = (*path, item_key(keys, item))
            if strict and at in found:
                raise ValueError(f"{shown(path)}: duplicate entries for key {shown(at[-1:])}")
            found[at] = "an item"
            for k, v in item.items():
                _collect(kind, k, v, (*at, k), found, strict)
    elif value is not None:
        found[path] = value


def shown(path: Path) -> str:
    """Format a path as error messages show it: .spec.containers[name="games"].image."""
    def quoted(value: Any) -> str:
        return f'"{value}"' if isinstance(value, str) else str(value)

    return "".join(f".{part}" if isinstance(part, str) else
                   "[" + ",".join(f"{k}={quoted(v)}" for k, v in part) + "]" for part in path)


def with_parents(paths: Iterable[Path]) -> set[Path]:
    """Return the paths and all their parents."""
    return {path[:length] for path in paths for length in range(1, len(path) + 1)}


def remove(kind: str, o: Object, path: Path) -> None:
    """Remove one field or list item."""
    parent: Any = None
    here: Any = o
    for part in path:
        parent, name = here, part
        if isinstance(part, str):
            here = here.get(part) if isinstance(here, dict) else None
        else:
            here = next((i for i in here or () if all(i.get(k, "TCP") == v for k, v in part)), None)
        if here is None:
            return
    if isinstance(name, str):
        del parent[name]
    else:
        parent.remove(here)


def merged(kind: str, live: Any, change: Any, name: str = "") -> Any:
    """Merge a change into a live object as server-side apply does, without removing fields that the change omits."""
    if isinstance(change, dict) and isinstance(live, dict) and name not in ATOMIC:
        return {**live, **{k: merged(kind, live.get(k), v, k) for k, v in change.items() if v is not None}}
    keys = list_keys(kind, name)
    if isinstance(change, list) and keys:
        old = {item_key(keys, item): item for item in live or ()}
        new = {item_key(keys, item): merged(kind, old.get(item_key(keys, item)), item) for item in change}
        return [*new.values(), *(item for key, item in old.items() if key not in new)]
    return copy.deepcopy(change)


def apply(kind: str, live: Object | None, config: Object, owners: list[Owner], manager: str, force: bool) -> Object:
    """Apply a configuration (server-side apply). Raises Conflict, ValueError."""
    asked, there = leaves(kind, config, strict=True), leaves(kind, live)
    own = next((o for o in owners if (o.manager, o.operation, o.subresource) == (manager, "Apply", "")), None)
    others = [o for o in owners if o is not own]
    lost = [(o, path) for o in others for path in sorted(o.fields & asked.keys(), key=str)
            if there.get(path) != asked[path]]
    if lost and not force:
        raise Conflict(_conflict_message(lost))
    for o, path in lost:
        o.fields.discard(path)
    result: Object = merged(kind, live or {}, config)
    if own is None:
        own = Owner(manager, "Apply", "", config["apiVersion"])
        owners.append(own)
    gone = with_parents(own.fields) - with_parents(asked) - with_parents(p for o in others for p in o.fields)
    for path in sorted(gone, key=len):
        remove(kind, result, path)
    own.fields, own.api = set(asked), config["apiVersion"]
    owners[:] = [o for o in owners if o.fields]
    return result


def _conflict_message(lost: list[tuple[Owner, Path]]) -> str:
    by_owner: dict[str, list[str]] = {}
    for owner, path in lost:
        by_owner.setdefault(str(owner), []).append(shown(path))
    many = "s" if len(lost) > 1 else ""
    said = [f"conflict with {owner}: {paths[0]}" if len(paths) == 1 else
            f"conflicts with {owner}:\n" + "\n".join(f"- {p}" for p in paths) for owner, paths in by_owner.items()]
    return f"Apply failed with {len(lost)} conflict{many}: " + "\n".join(said)


def updated(kind: str, before: Object | None, after: Object, owners: list[Owner], manager: str, sub: str) -> None:
    """Transfer ownership of the changed fields to the manager that wrote them without apply."""
    old, new = leaves(kind, before), leaves(kind, after)
    changed = {path for path in new if old.get(path) != new[path]}
    own = next((o for o in owners if (o.manager, o.operation, o.subresource) == (manager, "Update", sub)), None)
    if own is None:
        own = Owner(manager, "Update", sub, after["apiVersion"])
        owners.append(own)
    for o in owners:
        o.fields -= (old.keys() - new.keys()) | (changed if o is not own else set())
    own.fields |= changed
    owners[:] = [o for o in owners if o.fields]


def json_merge(live: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = json_merge(result.get(name), value)
    return result


def json_patch(live: Object, operations: list[Object]) -> Object:
    """Apply a JSON patch (RFC 6902) as far as helm uses it: replace values of maps. Raises ValueError, KeyError."""
    result = copy.deepcopy(live)
    for operation in operations:
        if operation["op"] not in ("add", "replace"):
            raise ValueError(f"operation {operation['op']}")
        *parents, name = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:])
        here = result
        for part in parents:
            here = here[part]
        here[name] = operation["value"]
    return result


def strategic_merge(kind: str, live: Any, patch: Any, name: str = "") -> Any:
    """Apply a Kubernetes strategic merge patch: lists of named items merge by their first key."""
    keys = list_keys(kind, name)
    if isinstance(patch, list) and keys:
        result = list(live or [])
        for item in patch:
            at = next((i for i, old in enumerate(result) if old.get(keys[0]) == item.get(keys[0])), None)
            if item.get("$patch") == "delete":
                result = [old for i, old in enumerate(result) if i != at]
            elif at is None:
                result.append(strategic_merge(kind, {}, item))
            else:
                result[at] = strategic_merge(kind, result[at], item)
        return result
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {k: v for k, v in patch.items() if k != "$patch"}
    merged_ = dict(live) if isinstance(live, dict) else {}
    for k, value in patch.items():
        if value is None:
            merged_.pop(k, None)
        elif not k.startswith("$"):
            merged_[k] = strategic_merge(kind, merged_.get(k), value, k)
    for k, value in patch.items():
        _directive(kind, merged_, k, value)
    return merged_


def _directive(kind: str, o: Object, directive: str, value: Any) -> None:
    verb, _, name = directive.partition("/")
    if verb == "$retainKeys":
        for k in o.keys() - set(value):
            del o[k]
    elif verb == "$deleteFromPrimitiveList":
        o[name] = [v for v in o.get(name, []) if v not in value]
    elif verb == "$setElementOrder" and (keys := list_keys(kind, name)):
        order = [item[keys[0]] for item in value]
        o[name] = sorted(o.get(name, []), key=lambda i: order.index(i[keys[0]]) if i[keys[0]] in order else len(order))
    elif directive.startswith("$") and verb not in ("$setElementOrder", "$patch"):
        raise ValueError(f"unknown directive {directive}")
