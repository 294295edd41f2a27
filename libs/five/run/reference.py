"""Reference of a run's configuration, from its classes: type, default, unit, meaning and source of every key.

`five config` prints it; docs/configuration.md is generated from it.
"""

import types
import typing
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from five import yaml_core
from five.run.config import RunConfig
from five.run.units import unit_of

PAPER = "Berner et al. 2019"
# Sources of the defaults, by key; tests/run/test_rerun_preset.py compares the values of table 2 and figure 7. All other
# defaults are this project's.
SOURCES: Mapping[str, str] = {
    **{f"learning.{name}": f"{PAPER}, table 2, Rerun" for name in (
        "lstm_unroll_length", "samples_per_segment", "batch_samples", "gradient_steps_per_iteration", "gae_lambda",
        "ppo_clip", "value_loss_weight", "adam_beta1", "adam_beta2")},
    "game.frameskip": f"{PAPER}, table 2, Rerun",
    "learning.gradient_clip": f"{PAPER}, section 3.2",
    "model.lstm": f"{PAPER}, table 2, Rerun", "buffer.sample_reuse": f"{PAPER}, table 2, Rerun",
    "buffer.capacity_samples": PAPER, "league.past_opponent_share": f"{PAPER}, table 2, Rerun",
    "league.quality_learning_rate": f"{PAPER}, table 2, Rerun", "league.add_every_versions": f"{PAPER}, appendix N",
    **{f"rating.{name}": f"{PAPER}, appendix J" for name in ("sigma", "beta", "tau", "games_per_rating")},
    **{f"schedules.{name}.initial": f"{PAPER}, figure 7: the value at version 0" for name in (
        "learning_rate", "entropy_coefficient", "team_spirit", "gae_horizon_seconds")},
    **{f"game.observation.{name}": f"{PAPER}, table 4" for name in (
        "allied_creeps", "neutral_creeps", "buildings", "wards", "couriers", "hero_modifiers", "unit_modifiers",
        "pickups", "minimap", "nearby_map", "passability")},
    "game.heroes_per_team": PAPER, "rewards.preset": f"{PAPER}, table 6", "rewards.time_decay": f"{PAPER}, appendix G",
    "rewards.time_decay_seconds": f"{PAPER}, appendix G",
}
OWN = "chosen by this project"
REQUIRED = "required"


@dataclass(frozen=True)
class KeyReference:
    """Reference of one key.

    Attributes:
        path: dotted path, with ``[]`` after a list of sections.
        type: type and bounds.
        default: default value as YAML, or `REQUIRED`.
        unit: unit of a number, "" of other values.
        meaning: the key's description.
        source: source of the default.
        defined: class that defines the key, module.Class.
        presets: values of the presets that differ from the default, by preset.
    """

    path: str
    type: str
    default: str
    unit: str
    meaning: str
    source: str
    defined: str
    presets: Mapping[str, str]


@dataclass(frozen=True)
class SectionReference:
    """Reference of one section: dotted path ("" for the root), meaning and own keys."""

    path: str
    meaning: str
    keys: tuple[KeyReference, ...]


def reference(presets: Mapping[str, RunConfig] | None = None) -> list[SectionReference]:
    """Return every section in order of the classes; each key is in exactly one. ``presets``: configurations by name."""
    trees = {name: config.model_dump(mode="json", by_alias=True) for name, config in (presets or {}).items()}
    default = RunConfig().model_dump(mode="json", by_alias=True)
    return list(_sections(RunConfig, "", _text_of(RunConfig), default, trees))


def _sections(kind: type[BaseModel], path: str, meaning: str, default: Any,
              trees: Mapping[str, Any]) -> Iterator[SectionReference]:
    keys, below = [], []
    used = Counter(section_of(info.annotation)[0] for info in kind.model_fields.values())
    for name, info in kind.model_fields.items():
        key = f"{path}.{info.alias or name}".lstrip(".")
        section, many = section_of(info.annotation)
        value = default.get(info.alias or name) if isinstance(default, dict) else None
        under = {preset: tree.get(info.alias or name) if isinstance(tree, dict) else None
                 for preset, tree in trees.items()}
        if section is None or many or value is None:
            keys.append(_key(kind, key, info, value, default is not None, under))
        if section is not None:
            # An item of a list, or an absent section, has the defaults of its class.
            inside = value if isinstance(value, dict) else None
            words = _text_of(section)
            if used[section] > 1:  # the class does not say what this one of its sections is
                words = f"{info.description} {words}"
            below.append((section, f"{key}[]" if many else key, words, inside, under if inside is not None else {}))
    yield SectionReference(path, meaning, tuple(keys))
    for section, at, words, value, under in below:
        yield from _sections(section, at, words, value, under)


def _text_of(kind: type[BaseModel]) -> str:
    return " ".join((kind.__doc__ or "").split())


def _key(kind: type[BaseModel], path: str, info: FieldInfo, value: Any, known: bool,
         presets: Mapping[str, Any]) -> KeyReference:
    if not known:
        value = info.get_default(call_default_factory=True)
        default = REQUIRED if value is PydanticUndefined else format_value(value)
    else:
        default = format_value(value)
    words, numeric = type_of(info.annotation), _numeric(info.annotation)
    others = {name: format_value(v) for name, v in presets.items() if format_value(v) != default}
    source = "" if default == REQUIRED else SOURCES.get(path, OWN)
    return KeyReference(path, words + _bounds(info), default, unit_of(path) if numeric else "",
                        info.description or "", source, f"{kind.__module__}.{kind.__name__}", others)


def section_of(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """Return the section class within a type, and whether it is in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    for inner in get_args(annotation):
        found, _ = section_of(inner)
        if found is not None:
            return found, get_origin(annotation) in (list, tuple)
    return None, False


def _numeric(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):  # or none
        return any(_numeric(kind) for kind in get_args(annotation))
    return annotation in (int, float)


def type_of(annotation: Any) -> str:
    """Return a type as text: ``integer``, ``list of text``, ``random | scripted``."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(str(choice) for choice in inner)
    if origin in (Union, types.UnionType):
        return " or ".join("none" if kind is types.NoneType else type_of(kind) for kind in inner)
    if origin in (list, tuple):
        return f"list of {type_of(inner[0])}"
    if origin is dict:
        return f"mapping of {type_of(inner[0])} to {type_of(inner[1])}"
    if origin is typing.Annotated:
        return type_of(inner[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    return {int: "integer", float: "number", bool: "true | false", str: "text"}[annotation]


def _bounds(info: FieldInfo) -> str:
    found = []
    for bound in info.metadata:
        for kind, sign, name in ((Ge, ">=", "ge"), (Gt, ">", "gt"), (Le, "<=", "le"), (Lt, "<", "lt")):
            if isinstance(bound, kind):
                found.append(f"{sign} {getattr(bound, name)}")
    return f", {', '.join(found)}" if found else ""


def format_value(value: Any) -> str:
    """Return a value as one line of YAML."""
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", by_alias=True)
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    text = yaml_core.dump(value, default_flow_style=True, width=1 << 20, sort_keys=False).strip()
    return text.removesuffix("...").strip() or '""'
