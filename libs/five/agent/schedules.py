"""Hyperparameters that change during a run, piecewise linear in versions (Berner et al. 2019, figure 7).

The configuration of the schedules is part of the run's state, not of the program: it can be replaced while a run
goes on, and is stored with every checkpoint.
"""

from dataclasses import asdict, dataclass
from typing import Any

from five.agent.config import RampConfig, ScheduleConfig, SchedulesConfig

SCHEDULED = ("learning_rate", "entropy_coefficient", "team_spirit", "gae_horizon_seconds")


@dataclass(frozen=True)
class Hyperparameters:
    """The scheduled values that hold for a version. Rollouts use the last two, the optimizer the first two."""

    learning_rate: float
    entropy_coefficient: float
    team_spirit: float
    gae_horizon_seconds: float

    def as_dict(self) -> dict[str, float]:
        """By name, as they travel with a version."""
        return asdict(self)


def value_at(schedule: ScheduleConfig, version: int) -> float:
    """The schedule's value at a version: within a ramp on the line, after it at its end until the next begins."""
    value = schedule.initial
    for ramp in schedule.ramps:
        if version < ramp.start:
            break
        if version >= ramp.start + ramp.length:
            value = ramp.to
        else:
            value = ramp.from_ + (ramp.to - ramp.from_) * (version - ramp.start) / ramp.length
    return value


def hyperparameters_at(schedules: SchedulesConfig, version: int) -> Hyperparameters:
    """All scheduled values at a version."""
    return Hyperparameters(*(value_at(getattr(schedules, name), version) for name in SCHEDULED))


def change_schedule(schedules: SchedulesConfig, name: str, version: int, to: float, length: int) -> SchedulesConfig:
    """The schedules with one value changed while running: from its value at ``version`` to ``to`` over ``length``
    versions, and then for good.

    What lies before ``version`` stays as it was; a ramp under way is cut there, those that begin there or later are
    dropped: the same change made twice is made once. Raises ValueError for an unknown name or a value that no run can
    use.
    """
    schedule = _find_schedule(schedules, name)
    if version < 0 or length < 0:
        raise ValueError(f"version {version} and length {length} may not be negative")
    before = _ramps_before(schedule, version)
    return _replace_schedule(schedules, name, schedule.initial, (
        *before, RampConfig(start=version, length=length, from_=_end_value(schedule.initial, before), to=to)))


def restore_schedule(schedules: SchedulesConfig, name: str, version: int, earlier: ScheduleConfig) -> SchedulesConfig:
    """The schedules with one value as ``earlier`` has it, from ``version`` on; what lies before stays as it was.

    Raises ValueError as `change_schedule`.
    """
    schedule = _find_schedule(schedules, name)
    if version < 0:
        raise ValueError(f"version {version} may not be negative")
    before = _ramps_before(schedule, version)
    there, here = value_at(earlier, version), _end_value(schedule.initial, before)
    ahead = []
    for ramp in earlier.ramps:
        if ramp.start >= version:
            ahead.append(ramp)
        elif ramp.start + ramp.length > version:
            ahead.append(RampConfig(start=version, length=ramp.start + ramp.length - version, from_=there, to=ramp.to))
    jump = () if here == there else (RampConfig(start=version, length=0, from_=here, to=there),)
    return _replace_schedule(schedules, name, schedule.initial, (*before, *jump, *ahead))


def _find_schedule(schedules: SchedulesConfig, name: str) -> ScheduleConfig:
    if name not in SCHEDULED:
        raise ValueError(f"{name!r} is not scheduled; these are: {', '.join(SCHEDULED)}")
    schedule: ScheduleConfig = getattr(schedules, name)
    return schedule


def _ramps_before(schedule: ScheduleConfig, version: int) -> tuple[RampConfig, ...]:
    """The ramps that begin before ``version``; one under way is cut there."""
    ramps = []
    for ramp in schedule.ramps:
        if ramp.start >= version:
            break
        if ramp.start + ramp.length > version:
            ramp = RampConfig(start=ramp.start, length=version - ramp.start, from_=ramp.from_,
                              to=value_at(schedule, version))
        ramps.append(ramp)
    return tuple(ramps)


def _end_value(initial: float, ramps: tuple[RampConfig, ...]) -> float:
    return ramps[-1].to if ramps else initial


def _replace_schedule(schedules: SchedulesConfig, name: str, initial: float, ramps: tuple[RampConfig, ...]) -> SchedulesConfig:
    changed = ScheduleConfig(initial=initial, ramps=ramps)
    return SchedulesConfig.model_validate(schedules.model_copy(update={name: changed}).model_dump(by_alias=True))


def dump_schedules(schedules: SchedulesConfig) -> dict[str, Any]:
    """As JSON values, for the run's state. `load_schedules` reads them back."""
    return schedules.model_dump(mode="json", by_alias=True)


def load_schedules(values: dict[str, Any]) -> SchedulesConfig:
    """From `dump_schedules`. Raises pydantic.ValidationError naming each wrong key."""
    return SchedulesConfig.model_validate(values)
