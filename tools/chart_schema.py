"""JSON Schema of the Helm chart's ``run.overrides``: what RunConfig accepts, with every key optional.

With it helm refuses a wrong key at install, before any pod starts.
"""

import json
from collections.abc import Mapping
from typing import Any

from five.run.config import RunConfig
from five.run.renamed_keys import REMOVED, RENAMED, refusal

Schema = dict[str, Any]

# The schema accepts any value of these keys. The chart refuses them with a better message than helm's
# (charts/templates/_validate.tpl). A test compares this list with the rendered chart.
COMPUTED = (
    "preset", "name", "rpc.listen_host", "store.state_url", "store.params_url", "blobs.url", "telemetry.metrics_host",
    "tracing.endpoint",
    "services.dota_env.addresses", "services.rollout.environment", "services.inference.addresses",
    "services.inference.device", "services.optimizer.optimizers", "services.optimizer.ranks_per_node",
    "services.optimizer.addresses", "services.optimizer.device", "services.opponents.address",
    "services.evaluator.enabled", "services.play.enabled", "services.dotaservice.host", "services.dotaservice.port",
    "services.dotaservice.games",
    "services.controller.host", "services.controller.port", "services.controller.keep_serving",
)
# Keywords that are left out: `title` repeats the key, and presets have other defaults than the classes.
LEFT_OUT = ("title", "default")
BEGIN = '"overrides": '
# Patterns of numbers as text. Go's regular expressions have no lookahead, so "not zero" is spelled out.
ANY = r"[0-9]*\.?[0-9]+"
NOT_ZERO = r"([0-9]*[1-9][0-9]*(\.[0-9]+)?|0*\.[0-9]*[1-9][0-9]*)"
EXPONENT = r"([eE][+-]?[0-9]+)?"
SMALL = r"[1-9](\.[0-9]+)?[eE]-0*[1-9][0-9]*"
BELOW_ONE = rf"0?\.[0-9]+|{SMALL}"
NOT_ZERO_BELOW_ONE = rf"0?\.[0-9]*[1-9][0-9]*|{SMALL}"


def overrides() -> Schema:
    """Return the schema (JSON Schema draft 7)."""
    whole = RunConfig.model_json_schema(by_alias=True)
    schema = _partial(whole, whole["$defs"], merged=True)
    schema["properties"] = {"preset": {}, **schema["properties"]}
    accepted = dict.fromkeys(COMPUTED, "The chart computes it from its own values.") | replaced_keys()
    for path, description in accepted.items():
        *sections, key = path.split(".")
        at = schema["properties"]
        for section in sections:
            at = at[section]["properties"]
        at[key] = {"description": description}
    return schema


def replaced_keys() -> dict[str, str]:
    """Return each renamed or removed key's path with the message that refuses it.

    The schema accepts any value of them, like those of ``COMPUTED``: helm would not say what replaces them.
    """
    return {path: message for path in sorted({**RENAMED, **REMOVED}) if (message := refusal(path))}


def with_overrides(text: str) -> str:
    """Return charts/values.schema.json with the schema replaced and the rest unchanged. Raises ValueError if ``text``
    has not exactly one place for it."""
    if text.count(BEGIN) != 1:
        raise ValueError(f"values.schema.json: {BEGIN.strip()!r} occurs {text.count(BEGIN)} times, expected once")
    begin = text.index(BEGIN) + len(BEGIN)
    _, end = json.JSONDecoder().raw_decode(text, begin)
    line = text[text.rindex("\n", 0, begin) + 1:begin]
    return text[:begin] + _written(overrides(), len(line) - len(line.lstrip())) + text[end:]


def as_text(number: Mapping[str, Any]) -> str | None:
    """Return a pattern of the numbers within a schema's bounds; None for bounds that no pattern is known for.

    `helm --set a=0.5` passes text; it passes only whole numbers as numbers.
    """
    low = number.get("minimum", number.get("exclusiveMinimum"))
    high = number.get("maximum", number.get("exclusiveMaximum"))
    if low is None and high in (None, 0):
        return f"^{'-?' if high is None else '-'}{ANY}{EXPONENT}$"
    if low is not None and low < 0 and high == 0:
        positive = as_text({"minimum": 0, "maximum": -low})
        return positive and positive.replace("^", "^-", 1)
    if low in (0.1, 0.01, 0.001) and high is None:
        # A whole part, or a digit other than 0 within the bound's decimal places.
        places = len(str(low)) - len("0.")
        return rf"^(0*[1-9][0-9]*(\.[0-9]+)?|0*\.0{{0,{places - 1}}}[1-9][0-9]*)$"
    if low not in range(10) or high not in (None, *range(1, 100)):
        return None
    low, high = int(low), None if high is None else int(high)
    if low == 0 and high is None:
        return f"^{NOT_ZERO if 'exclusiveMinimum' in number else ANY}{EXPONENT}$"
    if high is None:
        return rf"^([{low}-9]|[1-9][0-9]+)(\.[0-9]+)?$"
    forms = [NOT_ZERO_BELOW_ONE if "exclusiveMinimum" in number else BELOW_ONE] if low == 0 else []
    if wholes := "|".join(map(str, range(max(1, low), high))):
        forms.append(rf"({wholes})\.[0-9]+")
    if "maximum" in number:
        forms.append(rf"{high}\.0+")
    return f"^({'|'.join(forms)})$"


def _partial(schema: Mapping[str, Any], shared: Mapping[str, Any], merged: bool) -> Schema:
    """Return ``schema`` with its references inlined.

    ``merged``: it is merged over a preset, so that no key is required. A list replaces the preset's: its items are
    complete.
    """
    if "$ref" in schema:
        schema = {**shared[schema["$ref"].rpartition("/")[2]], **{k: v for k, v in schema.items() if k != "$ref"}}
    if "anyOf" in schema:
        # helm's message is clearer for one schema of two types than for two schemas.
        (value,) = (_partial(s, shared, merged) for s in schema["anyOf"] if s != {"type": "null"})
        types = value["type"] if isinstance(value["type"], list) else [value["type"]]
        return {**value, "type": [*types, "null"], "description": schema["description"]}
    found: Schema = {k: v for k, v in schema.items() if k not in (*LEFT_OUT, "$defs", "required")}
    if "required" in schema and not merged:
        found["required"] = schema["required"]
    if "enum" in found.get("propertyNames", {}):
        # helm 4 does not report the path of a name that propertyNames refuses.
        value = found["additionalProperties"]
        found |= {"properties": dict.fromkeys(found.pop("propertyNames")["enum"], value), "additionalProperties": False}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _partial(found[key], shared, merged=False)
    if "properties" in found:
        found["properties"] = {k: _partial(v, shared, merged) for k, v in found["properties"].items()}
    if found.get("type") == "number" and (pattern := as_text(found)):
        found |= {"type": ["number", "string"], "pattern": pattern}
    # A fixed order: another version of pydantic must not change the file.
    first: Schema = {k: found[k] for k in ("description", "type", "additionalProperties") if k in found}
    return first | dict(sorted(found.items()))


def _written(value: Any, indent: int) -> str:
    """Return ``value`` as JSON with each property on its own line, for readable diffs."""
    if not (isinstance(value, dict) and "properties" in value):
        return json.dumps(value, ensure_ascii=False)
    deep = " " * indent
    properties = [f"{deep}    {json.dumps(k)}: {_written(v, indent + 4)}" for k, v in value["properties"].items()]
    others = {k: json.dumps(v, ensure_ascii=False) for k, v in value.items() if k != "properties"}
    rows = [f"{deep}  {json.dumps(k)}: {v}" for k, v in others.items()]
    rows.append(f'{deep}  "properties": {{\n' + ",\n".join(properties) + f"\n{deep}  }}")
    return "{\n" + ",\n".join(rows) + f"\n{deep}}}"
