"""Mutators that keep the syntax of JSON, YAML and protobuf valid, so that mutated inputs reach the checks behind it."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import yaml
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from tests.fuzz.targets import Mutate, join_messages, split_messages

NUMBERS = (0, 1, -1, 2, 7, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, -2**63,
           10**30)
FLOATS = (0.0, -0.0, 0.5, 1e-300, 1e300, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "0", "-1", "a", "x" * 300, "\0", "é", "\ud800", "../..", "version-3", "1" * 5000, "NaN", "{}", "[]", "\n")


def mutate_bytes(data: bytes, dice: Random) -> bytes:
    """Change, remove, insert or repeat a few bytes."""
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        at = dice.randint(0, len(found))
        size = dice.choice((1, 1, 2, 4, 8))
        match dice.randrange(5):
            case 0 if found:
                found[min(at, len(found) - 1)] ^= 1 << dice.randrange(8)
            case 1:
                found[at:at + size] = dice.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * size
            case 2:
                found[at:at] = dice.randbytes(size)
            case 3:
                del found[at:at + dice.choice((1, 4, 64))]
            case _:
                found[at:at] = found[at:at + dice.choice((4, 64))]
    return bytes(found)


def _value(dice: Random, depth: int = 0) -> Any:
    """Return an unsuitable JSON value."""
    match dice.randrange(9):
        case 0 | 1:
            return dice.choice(NUMBERS)
        case 2:
            return dice.choice(FLOATS)
        case 3 | 4:
            return dice.choice(TEXTS)
        case 5:
            return dice.choice((None, True, False))
        case 6:
            return [_value(dice, depth + 1) for _ in range(dice.randint(0, 3))] if depth < 3 else []
        case 7:
            return {dice.choice(TEXTS): _value(dice, depth + 1) for _ in range(dice.randint(0, 2))} if depth < 3 else {}
        case _:
            return _nested(dice.choice((2, 2, 2, 90, 3000))) if not depth and dice.random() < 0.2 else [[]]


def _nested(depth: int) -> Any:
    found: Any = []
    for _ in range(depth):
        found = [found]
    return found


def change_tree(tree: Any, dice: Random) -> Any:
    """Return JSON values with one changed, removed, added, duplicated or renamed."""
    if not isinstance(tree, dict | list) or not tree or dice.random() < 0.05:
        return _value(dice)
    keys: Any = list(tree) if isinstance(tree, dict) else range(len(tree))
    key = dice.choice(keys)
    found: Any = dict(tree) if isinstance(tree, dict) else list(tree)
    if isinstance(tree[key], dict | list) and tree[key] and dice.random() < 0.8:
        found[key] = change_tree(tree[key], dice)
        return found
    match dice.randrange(6):
        case 0:
            del found[key]
        case 1 if isinstance(found, dict):
            found[dice.choice(TEXTS)] = found.pop(key)
        case 1:
            found.insert(key, found[key])
        case 2 if isinstance(found, dict):
            found[dice.choice(TEXTS)] = _value(dice)
        case 2:
            found.append(_value(dice))
        case 3 if isinstance(found[key], int | float):
            found[key] = found[key] + dice.choice((1, -1, 0.5, 2**31, 1e30))
        case _:
            found[key] = _value(dice)
    return found


def json_text(tree: Any) -> bytes:
    """Return JSON text, with NaN and infinities as Python writes them, however deep."""
    try:
        return json.dumps(tree).encode("utf-8", "surrogatepass")
    except RecursionError:
        depth, inner = 0, tree
        while isinstance(inner, list) and len(inner) == 1:
            depth, inner = depth + 1, inner[0]
        return b"[" * max(depth, 1500) + b"]" * max(depth, 1500)


def mutate_json(data: bytes, dice: Random) -> bytes:
    """Change a value of a JSON text; other bytes as `mutate_bytes`."""
    if dice.random() < 0.2:
        return mutate_bytes(data, dice)
    if dice.random() < 0.01:
        return b"[" * 5000 + data
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(data, dice)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        tree = change_tree(tree, dice)
    return json_text(tree)


def mutate_yaml(data: bytes, dice: Random) -> bytes:
    """Change a value of a YAML text, written as JSON; other bytes as `mutate_bytes`."""
    if dice.random() < 0.4:
        return mutate_bytes(data, dice)
    try:
        return mutate_json(json.dumps(yaml.safe_load(data)).encode(), dice)
    except (ValueError, TypeError, yaml.YAMLError, RecursionError):
        return mutate_bytes(data, dice)


def within(unpack: Callable[[bytes], bytes], pack: Callable[[bytes, bytes], bytes], inner: Mutate) -> Mutate:
    """Return a mutator of packed contents: it unpacks, changes and packs again. ``pack`` gets the original input and
    the changed contents. Either may raise ValueError for an input that it cannot read."""
    def mutate(data: bytes, dice: Random) -> bytes:
        if dice.random() < 0.25:
            return mutate_bytes(data, dice)
        try:
            return pack(data, inner(unpack(data), dice))
        except Exception:
            return mutate_bytes(data, dice)
    return mutate


def _scalar(field: FieldDescriptor, old: Any, dice: Random) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return dice.choice((b"", mutate_bytes(old, dice), old + old, old[:-1], dice.randbytes(8)))
        if isinstance(old, bytes):  # proto2 gives text that is not UTF-8 as bytes
            old = old.decode("utf-8", "replace")
        texts = [*(t for t in TEXTS if t != "\ud800"), old + "x"]
        if old[:1] in "{[":
            return mutate_json(old.encode(), dice).decode("utf-8", "ignore")
        return dice.choice(texts)
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return dice.choice((*FLOATS, *map(float, NUMBERS)))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return not old
    if kind == FieldDescriptor.CPPTYPE_ENUM and field.enum_type.is_closed:  # of proto2, which takes no other number
        return dice.choice([value.number for value in field.enum_type.values])
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return dice.choice((0, 1, 2, 3, 4, 5, 6, 7, 255))
    low, high = {FieldDescriptor.CPPTYPE_INT32: (-2**31, 2**31 - 1), FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
                 FieldDescriptor.CPPTYPE_INT64: (-2**63, 2**63 - 1)}.get(kind, (0, 2**64 - 1))
    return min(max(dice.choice((*NUMBERS, old + 1, old - 1, old * 2)), low), high)


def change_message(message: Message, dice: Random) -> None:
    """Change a random field of a message, or of one inside it."""
    fields = list(message.DESCRIPTOR.fields)
    if not fields:
        return
    present = [field for field, _ in message.ListFields()]
    field = dice.choice(present) if present and dice.random() < 0.8 else dice.choice(fields)
    name = field.name
    if dice.random() < 0.06:
        message.ClearField(name)
        return
    value = getattr(message, name)
    nested = field.message_type is not None
    repeated = not isinstance(value, Message) and hasattr(value, "MergeFrom") and not isinstance(value, str | bytes)
    if nested and repeated:
        if not len(value) or dice.random() < 0.1:
            value.add()
        elif dice.random() < 0.1:
            value.add().CopyFrom(value[dice.randrange(len(value) - 1)] if len(value) > 1 else value[0])
        elif dice.random() < 0.05:
            del value[dice.randrange(len(value))]
        else:
            change_message(value[dice.randrange(len(value))], dice)
    elif nested:
        if not message.HasField(name):
            value.SetInParent()
        change_message(value, dice)
    elif repeated:
        if len(value) and dice.random() < 0.7:
            at = dice.randrange(len(value))
            value[at] = _scalar(field, value[at], dice)
        else:
            value.append(_scalar(field, field.default_value if field.default_value != [] else _zero(field), dice))
    else:
        setattr(message, name, _scalar(field, value, dice))


def _zero(field: FieldDescriptor) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return b"" if field.type == FieldDescriptor.TYPE_BYTES else ""
    return 0


def mutate_message(kind: type[Message]) -> Mutate:
    """Return a mutator of one protobuf message."""
    def mutate(data: bytes, dice: Random) -> bytes:
        if dice.random() < 0.15:
            return mutate_bytes(data, dice)
        try:
            message = kind.FromString(data)
        except DecodeError:
            return mutate_bytes(data, dice)
        for _ in range(dice.choice((1, 1, 2, 3))):
            change_message(message, dice)
        return message.SerializeToString()
    return mutate


def mutate_stream(kind: type[Message]) -> Mutate:
    """Return a mutator of a stream of messages (`tests.fuzz.targets.join_messages`)."""
    one = mutate_message(kind)

    def mutate(data: bytes, dice: Random) -> bytes:
        messages = split_messages(data)
        if not messages or dice.random() < 0.02:
            return mutate_bytes(data, dice)
        at = dice.randrange(len(messages))
        match dice.randrange(12):
            case 0:
                messages.append(messages[at])
            case 1 if len(messages) > 1:
                del messages[at]
            case _:
                messages[at] = one(messages[at], dice)
        return join_messages(messages)
    return mutate
