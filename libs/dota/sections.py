"""Typed configuration sections: pydantic's when installed, otherwise a small replacement with the same interface.

The game alone needs only numpy, so that it installs next to any trainer. ``dota.config`` uses the subset of pydantic
named here. The replacement accepts the same values, checks the same bounds and raises ValueError for the same mistakes,
with one difference: it never parses text as a number.
"""

import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

__all__ = ["BaseModel", "ConfigDict", "Field", "model_validator"]

T = TypeVar("T")
_MISSING: Any = object()


class PlainField:
    """Configuration field: type, default, bounds and description. ``strict`` is pydantic's and has no effect here."""

    def __init__(self, default: Any = _MISSING, *, default_factory: Callable[[], Any] | None = None,
                 description: str = "", ge: float | None = None, gt: float | None = None, le: float | None = None,
                 lt: float | None = None, min_length: int | None = None, strict: bool = True) -> None:
        self.default = default
        self.default_factory = default_factory
        self.description = description
        self.annotation: Any = Any
        self._bounds = [(sign, bound) for sign, bound in ((">=", ge), (">", gt), ("<=", le), ("<", lt))
                        if bound is not None]
        self._min_length = min_length

    def make_default(self) -> Any:
        """Return the default, copied if it is mutable."""
        if self.default_factory is not None:
            return self.default_factory()
        return type(self.default)(self.default) if isinstance(self.default, list | dict) else self.default

    def check(self, value: Any, where: str) -> Any:
        """Convert a value to the field's type. Raises ValueError that names the problem and its location."""
        converted = _convert_value(self.annotation, value, where)
        if converted is None:  # only a type that includes None lets it through
            return None
        for sign, bound in self._bounds:
            fits = {">=": converted >= bound, ">": converted > bound, "<=": converted <= bound,
                    "<": converted < bound}[sign]
            if not fits:
                raise ValueError(f"{where} must be {sign} {bound}, not {converted}")
        if self._min_length is not None and len(converted) < self._min_length:
            raise ValueError(f"{where} needs {self._min_length} or more, it has {len(converted)}")
        return converted


def _number(kind: type, value: Any, where: str) -> Any:
    # A numpy scalar becomes a Python number.
    value = value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        raise ValueError(f"{where} must be {'an integer' if kind is int else 'a number'}, not {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{where} must be finite, not {value!r}")
    return kind(value)


def _convert_value(kind: Any, value: Any, where: str) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is Literal:
        if value not in args:
            raise ValueError(f"{where} must be one of {', '.join(map(repr, args))}, not {value!r}")
        return args[args.index(value)]  # not 8.0 for 8
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _convert_value(next(a for a in args if a is not type(None)), value, where)
    if isinstance(kind, type) and issubclass(kind, PlainSection):
        return value if isinstance(value, kind) else kind.model_validate(value, where)
    if origin in (list, tuple):
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where} must be a list, not {value!r}")
        return origin(_convert_value(args[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where} must be a mapping, not {value!r}")
        return {_convert_value(args[0], k, f"{where}: {k!r}"): _convert_value(args[1], v, f"{where}.{k}") for k,
                v in value.items()}
    if kind in (int, float):
        return _number(kind, value, where)
    if not isinstance(value, kind):
        raise ValueError(f"{where} must be {kind.__name__}, not {value!r}")
    return value


class PlainSection:
    """Immutable configuration section whose fields are its annotations."""

    model_fields: typing.ClassVar[dict[str, Any]] = {}
    _validators: typing.ClassVar[dict[str, str]] = {}  # mode, "before" or "after" the fields, by method

    def __init_subclass__(cls) -> None:
        cls.model_fields, cls._validators = dict(cls.model_fields), dict(cls._validators)
        for name, kind in typing.get_type_hints(cls).items():
            given = vars(cls).get(name, _MISSING)
            if name in ("model_fields", "_validators") or (given is _MISSING and name in cls.model_fields):
                continue
            field = given if isinstance(given, PlainField) else PlainField(given)
            field.annotation = kind
            cls.model_fields[name] = field
        cls._validators |= {name: value.validator_mode for name, value in vars(cls).items()
                            if hasattr(value, "validator_mode")}

    def __init__(self, **values: Any) -> None:
        self._fill(values, type(self).__name__)

    def _fill(self, values: Mapping[str, Any], where: str) -> None:
        for name in self._validators_of("before"):
            values = getattr(self, name)(values)
        if unknown := [name for name in values if name not in self.model_fields]:
            raise ValueError(f"{where} has no {', '.join(map(str, unknown))}; it has {', '.join(self.model_fields)}")
        for name, field in self.model_fields.items():
            given = values.get(name, _MISSING)
            value = field.make_default() if given is _MISSING else given
            if value is _MISSING:
                raise ValueError(f"{where}.{name} is missing")
            object.__setattr__(self, name, field.check(value, f"{where}.{name}"))
        for name in self._validators_of("after"):
            getattr(self, name)()

    def _validators_of(self, mode: str) -> list[str]:
        return [name for name, of in self._validators.items() if of == mode]

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(f"{type(self).__name__}.{name} cannot be changed: make another with model_copy")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"

    @classmethod
    def model_validate(cls: type[T], values: Any, where: str = "") -> T:
        """Create the section from a mapping. Raises ValueError that names the invalid key."""
        if not isinstance(values, Mapping):
            raise ValueError(f"{where or cls.__name__} must be a mapping, not {values!r}")
        made = cls.__new__(cls)
        made._fill(values, where or cls.__name__)  # type: ignore[attr-defined]
        return made

    def model_dump(self, mode: str = "python", exclude: set[str] | None = None) -> dict[str, Any]:
        """Return the values by name; ``mode="json"`` has lists for tuples."""
        def plain(value: Any) -> Any:
            if isinstance(value, PlainSection):
                return value.model_dump(mode)
            if isinstance(value, tuple) and mode == "json":
                return list(value)
            return dict(value) if isinstance(value, dict) else value

        return {name: plain(getattr(self, name)) for name in self.model_fields if name not in (exclude or ())}

    def model_dump_json(self, exclude: set[str] | None = None) -> str:
        """Return the values as one line of JSON."""
        return json.dumps(self.model_dump("json", exclude), separators=(",", ":"))

    def model_copy(self: T, update: Mapping[str, Any] | None = None) -> T:
        """Return a copy with some values changed, without validation, as pydantic does."""
        made = type(self).__new__(type(self))
        for name, value in {**vars(self), **(update or {})}.items():
            object.__setattr__(made, name, value)
        return made


def plain_validator(mode: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a method that validates the whole section.

    With the mode "before" it is a class method that converts the given mapping, with "after" it checks the fields.
    """
    def mark(method: Callable[..., Any]) -> Callable[..., Any]:
        method.validator_mode = mode  # type: ignore[attr-defined]
        return method

    return mark


if TYPE_CHECKING:
    from pydantic import BaseModel as BaseModel
    from pydantic import ConfigDict as ConfigDict
    from pydantic import Field as Field
    from pydantic import model_validator as model_validator
else:
    try:
        from pydantic import BaseModel, ConfigDict, Field, model_validator
    except ImportError:
        BaseModel, ConfigDict, Field, model_validator = PlainSection, dict, PlainField, plain_validator
