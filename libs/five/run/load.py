"""Loader of a run's configuration: a preset or a file, then overrides, then validation.

A file with ``preset: NAME`` lists only its differences from that preset. Sections are merged key by key; lists and
plain values replace the preset's.
"""

import difflib
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from five import yaml_core
from five.run.config import RunConfig
from five.run.reference import section_of
from five.run.renamed_keys import migrate, refusal
from five.run.stored_values import move_to_bounds
from rapid.atomic_file import replace_text
from rapid.redaction import redact_tree

log = logging.getLogger(__name__)

_HERE = Path(__file__).resolve().parent
SHOWN_KEYS = 5  # of a section that has another value
# Allowed values of keys whose regular expression is hard to read.
PATTERN_ERRORS = {"name": 'only lowercase letters, digits and "-" are allowed, 63 characters at most, no "-" at the '
                          "start",
                  "services.optimizer.device": "cpu, cuda, or cuda:N for the GPU of number N, is allowed"}


class ConfigError(ValueError):
    """An invalid configuration. The message names each key's path, the problem, the value and the fix.

    ``paths`` are the keys with an invalid value, or their sections.
    """

    def __init__(self, message: str, paths: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.paths = tuple(paths)


def preset_folders() -> list[Path]:
    """Return the folders of presets: ``$FIVE_CONFIGS``, the source tree's ``configs/``, the installed package's."""
    folders = [Path(os.environ["FIVE_CONFIGS"])] if os.environ.get("FIVE_CONFIGS") else []
    return [f for f in [*folders, _HERE.parents[2] / "configs", _HERE / "presets"] if f.is_dir()]


def presets() -> dict[str, Path]:
    """Return the file of each preset by name."""
    found: dict[str, Path] = {}
    for folder in preset_folders():
        for path in sorted(folder.glob("*.yaml")):
            found.setdefault(path.stem, path)
    return found


def load(source: str | Path, overrides: Iterable[str] = ()) -> RunConfig:
    """Return the configuration of ``source`` (a preset's name or a YAML file) with ``overrides`` (``a.b=c``).

    Raises ConfigError naming the path of every key that is unknown, missing, or of the wrong type or range.
    """
    return validate(apply_overrides(_on_preset(_read(source), source), overrides), str(source))


def load_stored(path: Path, overrides: Iterable[str] = ()) -> RunConfig:
    """Return the configuration that a run stored in its folder. Keys that were renamed since are migrated, and numbers
    beyond this release's bounds are moved to them, with a warning for each.

    Raises ConfigError as `load`, with the command that corrects a value, and for an empty file; an old key among
    ``overrides`` is refused.
    """
    stored, overrides = migrate(_read(path)), list(overrides)
    if not stored:  # an earlier release did not write it to disk before the machine lost power
        raise ConfigError(f"{path} is empty: copy a backup there, or start another run")
    moved, lines = move_to_bounds(stored)
    for line in lines:
        log.warning("%s: %s", path, line)
    try:
        return validate(apply_overrides(moved, overrides), str(path))
    except ConfigError as error:
        raise ConfigError(f"{error}\n  a stored value is corrected by five train --resume {path.parent.name} "
                          "--accept-changes --set KEY=VALUE", error.paths) from None


def validate(tree: Mapping[str, Any], where: str) -> RunConfig:
    """Return ``tree`` as a RunConfig. Raises ConfigError with one line for each problem."""
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(explain(error, where), (".".join(map(str, p["loc"])) for p in error.errors())) from None


def rename(config: RunConfig, name: str) -> RunConfig:
    """Return the configuration under another name. Raises ConfigError for an invalid one."""
    return validate({**config.model_dump(mode="json", by_alias=True), "name": name}, f"run {name!r}")


def apply_overrides(tree: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Return a copy of ``tree`` with each ``a.b=c`` set, parsed by `value_of`. Raises ConfigError."""
    result = _copy_sections(tree)
    for text in overrides:
        path, equals, value = text.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(f"--set {text!r}: expected section.key=value")
        node = result
        for key in keys[:-1]:
            child = node.setdefault(key, {})
            if not isinstance(child, dict):
                raise ConfigError(f"--set {text!r}: {key!r} is a value, not a section")
            node = child
        try:
            node[keys[-1]] = value_of(keys, value)
        except yaml.YAMLError as error:
            raise ConfigError(f"--set {text!r}: the value is not valid YAML ({error})") from None
    return result


def value_of(keys: Sequence[str], text: str) -> Any:
    """Parse the value typed for a key as YAML. For a key that takes text, a number stays text (game.patch=7.19).

    Raises yaml.YAMLError.
    """
    value = yaml_core.load(text)
    if isinstance(value, bool | int | float) and _takes_text(keys):
        return text.strip()
    return value


def _takes_text(keys: Sequence[str]) -> bool:
    kind: Any = RunConfig
    for key in keys:
        field = kind.model_fields.get(key) if isinstance(kind, type) and issubclass(kind, BaseModel) else None
        if field is None:
            return False
        kind = field.annotation
    return kind is str or (get_origin(kind) is Literal and all(isinstance(choice, str) for choice in get_args(kind)))


def type_hint(kind: str, given: object) -> str:
    """Return the advice for a value of the wrong type; empty for other kinds of validation errors."""
    if kind in ("literal_error", "string_type") and isinstance(given, bool | int | float):
        return f"; quote it to make it text: \"{given}\""
    if kind == "bool_type":
        return "; write true or false"
    if kind in ("int_type", "float_type") and isinstance(given, str):
        return "; write decimal digits without quotes, \"_\" or \":\""
    return ""


def save(config: RunConfig, path: Path) -> None:
    """Write the whole configuration as YAML, atomically and to disk."""
    replace_text(path, yaml_core.dump(config.model_dump(mode="json", by_alias=True), sort_keys=False), sync=True)


def explain(error: ValidationError, where: str) -> str:
    """Return a validation error as text: each key's path and value, the problem, and the nearest known key."""
    lines = [f"{where}: the configuration is not valid"]
    for problem in error.errors():
        path = ".".join(str(part) for part in problem["loc"]) or "(top)"
        if problem["type"] == "extra_forbidden":
            if reason := refusal(re.sub(r"\.\d+(?=\.|$)", "[]", path)):
                lines.append(f"  {reason}")
                continue
            known = _keys_at(problem["loc"][:-1])
            close = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(sorted(known))}"
            lines.append(f"  {path}: unknown key; {hint}")
        else:
            given = problem.get("input")
            # A URL or an address may contain a password.
            secret = isinstance(given, dict) or path.endswith(("url", "endpoint")) or "@" in str(given)
            value = "" if secret else f" {json.dumps(redact_tree(given), default=str)}"
            message = PATTERN_ERRORS.get(path) if problem["type"] == "string_pattern_mismatch" else None
            if problem["type"] == "model_type":
                keys = _keys_at(problem["loc"])[:SHOWN_KEYS]
                message = f"a section is expected{', with keys such as ' if keys else ''}{', '.join(keys)}"
            message = message or problem["msg"].removeprefix("Value error, ").replace("Input should", "should")
            lines.append(f"  {path}{value}: {message}{type_hint(problem['type'], given)}")
    return "\n".join(lines)


def _keys_at(path: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = RunConfig
    for part in path:
        if isinstance(part, int):
            continue  # an item of a list, whose sections are already selected
        field = model.model_fields.get(part)
        section = None if field is None else section_of(field.annotation)[0]
        if section is None:
            return []
        model = section
    return [field.alias or name for name, field in model.model_fields.items()]


def _read(source: str | Path) -> dict[str, Any]:
    known = presets()
    path = known.get(str(source)) or Path(source)
    try:
        if not path.is_file():
            close = difflib.get_close_matches(str(source), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"presets: {', '.join(known)}"
            raise ConfigError(f"{source}: no preset and no file has this name; {hint}")
        tree = yaml_core.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{source}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: a configuration must be a mapping of sections, not a {type(tree).__name__}")
    return tree


def _on_preset(tree: dict[str, Any], source: str | Path) -> dict[str, Any]:
    """Return ``tree`` merged over the preset that it names, if any. Raises ConfigError for an unknown name."""
    chain = [str(source)]
    while "preset" in tree:
        rest = {key: value for key, value in tree.items() if key != "preset"}
        name, known = tree["preset"], presets()
        if not isinstance(name, str) or name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"presets: {', '.join(known)}"
            raise ConfigError(f"{chain[-1]}: preset {name!r}: unknown preset; {hint}")
        if name in chain:
            raise ConfigError(f"{chain[-1]}: preset: {' -> '.join([*chain, name])} is a cycle")
        chain.append(name)
        tree = _merge(_read(name), rest)
    return tree


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``above`` merged over ``below``: mappings key by key, other values whole."""
    merged = _copy_sections(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _merge(under, value) if isinstance(under, dict) and isinstance(value, Mapping) else value
    return merged


def _copy_sections(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a tree of sections. Lists are shared, because overrides replace them whole."""
    return {k: _copy_sections(v) if isinstance(v, Mapping) else v for k, v in tree.items()}
