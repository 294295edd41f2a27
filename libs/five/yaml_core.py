"""YAML with the scalar types of YAML 1.2's core schema. Every configuration, override, plan and ablation is read by it.

PyYAML alone follows YAML 1.1: ``010`` is 8, ``1:30`` is 90, ``1_000`` is 1000, ``yes`` is true, ``2018-08-05`` a date
and ``1e-5`` text. Here these are 10, text, text, text, text and 0.00001. A mapping that has a key twice is refused.
"""

import re
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_MAX_DIGITS = 1000
# Name of the type, the texts that have it, and their first characters. The first match counts.
_SCALARS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
     list("-+.0123456789")),
    ("merge", "<<", ["<"]),  # not in the core schema, but in use
)


class CoreLoader(yaml.SafeLoader):
    """Safe loader with the core schema's types, which refuses duplicate keys."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML declares it

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Compose a mapping. Raises ComposerError for a key that it has twice."""
        node: Any = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if key.value in seen:
                raise yaml.composer.ComposerError(None, None, f"duplicate key '{key.value}'", key.start_mark)
            seen.add(key.value)
        return node

    def construct_integer(self, node: Any) -> int:
        """Return an integer: decimal whatever its leading zeros, ``0o17`` or ``0x1f``."""
        text = str(self.construct_scalar(node))
        if len(text) <= _MAX_DIGITS:
            try:
                return int(text, 0 if text.startswith(("0o", "0x")) else 10)
            except ValueError:
                pass
        raise yaml.constructor.ConstructorError(None, None, f"'{text[:40]}' is not an integer", node.start_mark)


class CoreDumper(yaml.SafeDumper):
    """Safe dumper that quotes every text that YAML 1.1 or the core schema would read as another type."""


for _name, _pattern, _first in _SCALARS:
    for _class in (CoreLoader, CoreDumper):
        _class.add_implicit_resolver(f"{_TAG}{_name}", re.compile(f"^(?:{_pattern})$"), _first)
CoreLoader.add_constructor(f"{_TAG}int", CoreLoader.construct_integer)


def load(text: str) -> Any:
    """Return the single document of a YAML text. Raises yaml.YAMLError."""
    loader = CoreLoader(text)
    try:
        return loader.get_single_data()
    except RecursionError:
        raise yaml.YAMLError("the text is nested too deep") from None
    finally:
        loader.dispose()


def dump(value: Any, **options: Any) -> str:
    """Return a value as YAML; ``options`` are PyYAML's."""
    text: str = yaml.dump(value, Dumper=CoreDumper, **options)
    return text
