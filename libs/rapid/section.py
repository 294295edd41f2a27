"""Base class of configuration sections and of documents that people write, with limits of their numbers."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

MAX_SECONDS = 2_000_000  # sockets and gRPC count milliseconds in 32 bits
MAX_INTEGER = (1 << 31) - 1
MAX_LARGE_INTEGER = (1 << 63) - 1  # of seeds and bytes
MIN_FRACTION, MAX_NUMBER = 1e-30, 1e12  # squares and quotients of such numbers are finite


class Section(BaseModel):
    """Frozen section that refuses unknown keys, values of another type, and numbers that are not finite or too large.

    Defaults are validated too. Lists are not accepted for tuples unless a field is lax (``strict=False``).
    ``max_seconds`` bounds fields named ``*_seconds``; a section of game time, which no socket waits for, raises it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True)
    max_seconds: ClassVar[float] = MAX_SECONDS

    @field_validator("*")
    @classmethod
    def _fits_the_system(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse numbers above what sockets, gRPC and C integers take, which would fail only where they are used."""
        name = info.field_name or ""
        if isinstance(value, float) and value and not MIN_FRACTION <= abs(value) <= MAX_NUMBER:
            raise ValueError(f"0, or a number from {MIN_FRACTION:g} to {MAX_NUMBER:g} or its negative, is allowed")
        if isinstance(value, int | float):
            most: float = MAX_NUMBER if isinstance(value, float) else MAX_INTEGER
            if name.endswith("_seconds"):
                most = cls.max_seconds
            elif name == "seed" or name.endswith("_bytes"):
                most = MAX_LARGE_INTEGER
            if value > most:
                raise PydanticCustomError("less_than_equal", "at most {shown} is allowed", {
                    "le": most, "shown": f"{most:,}"})
        return value
