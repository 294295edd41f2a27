"""Parsing of untrusted YAML: bounded in size and depth, without aliases, tags or duplicate keys."""

from typing import Any

from yaml import AliasEvent, YAMLError

from five.yaml_core import CoreLoader

MAX_BYTES = 64 * 1024
MAX_DEPTH = 16


class _Loader(CoreLoader):
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        where = f"line {event.start_mark.line + 1}"
        if isinstance(event, AliasEvent):
            raise ValueError(f"{where}: aliases (*name) are not allowed; repeat the value")
        if getattr(event, "anchor", None) is not None:
            raise ValueError(f"{where}: anchors (&name) are not allowed")
        if getattr(event, "tag", None) is not None:
            raise ValueError(f"{where}: tags (!name) are not allowed")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ValueError(f"{where}: nested deeper than {MAX_DEPTH} levels")
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise ValueError(f"line {key.start_mark.line + 1}: keys must be strings")
        return super().construct_mapping(node, deep)


def parse_yaml(text: str | bytes) -> Any:
    """Return the single document of a YAML text.

    Raise ValueError with the line if it is too long, too deep, invalid, or uses a forbidden feature.
    """
    data = text.encode() if isinstance(text, str) else text
    if len(data) > MAX_BYTES:
        raise ValueError(f"{len(data)} bytes: at most {MAX_BYTES} are allowed")
    try:
        loader = _Loader(data.decode())
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8 text") from error
    except (YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise ValueError(f"{where}invalid YAML: {getattr(error, 'problem', None) or error}") from error
