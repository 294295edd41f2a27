"""The base class of the agent's configuration sections and documents."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

MAX_INTEGER = (1 << 31) - 1
MAX_BYTES = (1 << 63) - 1
MIN_FRACTION, MAX_NUMBER = 1e-30, 1e12  # squares and quotients of such numbers are finite


class Section(BaseModel):
    """Frozen section that refuses unknown keys, values of another type, and numbers that are not finite or too large.

    Defaults are validated too. Lists are not accepted for tuples unless a field is lax (``strict=False``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True)

    @field_validator("*")
    @classmethod
    def _fits_the_system(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse integers that C does not take, and numbers whose squares overflow: they would fail only in use."""
        if isinstance(value, float) and value and not MIN_FRACTION <= abs(value) <= MAX_NUMBER:
            raise ValueError(f"0, or a number from {MIN_FRACTION:g} to {MAX_NUMBER:g} or its negative, is allowed")
        most = MAX_BYTES if (info.field_name or "").endswith("_bytes") else MAX_INTEGER
        if isinstance(value, int) and value > most:
            raise ValueError(f"at most {most:,} is allowed")
        return value
