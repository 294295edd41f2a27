"""Hyperparameters as piecewise-linear functions of the version (Berner et al. 2019, figure 7).

The schedules are part of the run's state. They can be replaced while the run trains, and each checkpoint stores them.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from five.agent.config import RampConfig, ScheduleConfig, SchedulesConfig

ScheduleName = Literal["learning_rate", "entropy_coefficient", "team_spirit", "gae_horizon_seconds"]
SCHEDULED: tuple[str, ...] = get_args(ScheduleName)


@dataclass(frozen=True)
class Hyperparameters:
    """Scheduled values of one version. The optimizer uses the first two, rollouts the last two."""

    learning_rate: float
    entropy_coefficient: float
    team_spirit: float
    gae_horizon_seconds: float

    def as_dict(self) -> dict[str, float]:
        """Return the values by name, as a version stores them."""
        return asdict(self)


def value_at(schedule: ScheduleConfig, version: int) -> float:
    """Return the schedule's value at a version. Between ramps it is the end value of the last one."""
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
    """Return all scheduled values at a version."""
    return Hyperparameters(*(value_at(getattr(schedules, name), version) for name in SCHEDULED))


def change_schedule(schedules: SchedulesConfig, name: str, version: int, to: float, length: int) -> SchedulesConfig:
    """Return the schedules with one value ramped from its value at ``version`` to ``to`` over ``length`` versions.

    Values before ``version`` do not change. A ramp that is active at ``version`` is cut there, and later ones are
    dropped, so applying a change twice equals applying it once. Raise ValueError for an unknown name or a value out of
    range.
    """
    schedule = _find_schedule(schedules, name)
    if version < 0 or length < 0:
        raise ValueError(f"version {version}, length {length}: at least 0 is required")
    before = _ramps_before(schedule, version)
    return _replace_schedule(schedules, name, schedule.initial, (
        *before, RampConfig(start=version, length=length, from_=_end_value(schedule.initial, before), to=to)))


def restore_schedule(schedules: SchedulesConfig, name: str, version: int, earlier: ScheduleConfig) -> SchedulesConfig:
    """Return the schedules with one value following ``earlier`` from ``version`` on.

    Values before ``version`` do not change. Raise ValueError as `change_schedule` does.
    """
    schedule = _find_schedule(schedules, name)
    if version < 0:
        raise ValueError(f"version {version}: at least 0 is required")
    before = _ramps_before(schedule, version)
    target, current = value_at(earlier, version), _end_value(schedule.initial, before)
    ahead = []
    for ramp in earlier.ramps:
        if ramp.start >= version:
            ahead.append(ramp)
        elif ramp.start + ramp.length > version:
            ahead.append(RampConfig(start=version, length=ramp.start + ramp.length - version, from_=target, to=ramp.to))
    jump = () if current == target else (RampConfig(start=version, length=0, from_=current, to=target),)
    return _replace_schedule(schedules, name, schedule.initial, (*before, *jump, *ahead))


def _find_schedule(schedules: SchedulesConfig, name: str) -> ScheduleConfig:
    if name not in SCHEDULED:
        raise ValueError(f"{name!r} is not scheduled; allowed: {', '.join(SCHEDULED)}")
    schedule: ScheduleConfig = getattr(schedules, name)
    return schedule


def _ramps_before(schedule: ScheduleConfig, version: int) -> tuple[RampConfig, ...]:
    """Return the ramps that begin before ``version``, the last one cut there if it is still active."""
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


def _replace_schedule(schedules: SchedulesConfig, name: str, initial: float, ramps: tuple[RampConfig, ...]
                      ) -> SchedulesConfig:
    changed = ScheduleConfig(initial=initial, ramps=ramps)
    return SchedulesConfig.model_validate(schedules.model_copy(update={name: changed}).model_dump(by_alias=True))


def dump_schedules(schedules: SchedulesConfig) -> dict[str, Any]:
    """Return JSON values for the run's state, which `load_schedules` reads."""
    return schedules.model_dump(mode="json", by_alias=True)


def load_schedules(values: dict[str, Any]) -> SchedulesConfig:
    """Read the result of `dump_schedules`. Raise pydantic.ValidationError naming each wrong key."""
    return SchedulesConfig.model_validate(values)
