"""Hyperparameters as piecewise-linear functions of the training progress (Berner et al. 2019, figure 7).

A schedule's position is the version, or the number of hero-steps that the run has received, by its unit. Reverts and
resumes continue both; after a crash the hero-steps are those of the checkpoint, while the version continues behind the
newest one. The schedules are part of the run's state. They can be replaced while the run trains, and each checkpoint
stores them.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from dota.config import MAX_GAME_SECONDS
from five.agent.config import RampConfig, ScheduleConfig, SchedulesConfig

ScheduleName = Literal["learning_rate", "entropy_coefficient", "team_spirit", "gae_horizon_seconds",
                       "scripted_fraction", "scripted_bot", "game_seconds", "middle_fraction", "building_health"]
SCHEDULED: tuple[str, ...] = get_args(ScheduleName)


@dataclass(frozen=True)
class Hyperparameters:
    """Scheduled values of one version. The optimizer uses the first two, rollouts the others."""

    learning_rate: float
    entropy_coefficient: float
    team_spirit: float
    gae_horizon_seconds: float
    scripted_fraction: float = 0.0
    scripted_bot: float = -1.0
    game_seconds: float = MAX_GAME_SECONDS
    middle_fraction: float = 0.0
    building_health: float = 1.0

    def as_dict(self) -> dict[str, float]:
        """Return the values by name, as a version stores them."""
        return asdict(self)


def position_of(schedule: ScheduleConfig, version: int, hero_steps: int) -> int:
    """Return the position in the schedule's unit."""
    return version if schedule.unit == "versions" else hero_steps


def counts_hero_steps(schedules: SchedulesConfig) -> bool:
    """Return whether any schedule counts hero-steps."""
    return any(getattr(schedules, name).unit == "hero_steps" for name in SCHEDULED)


def value_at(schedule: ScheduleConfig, position: int) -> float:
    """Return the schedule's value at a position in its unit. Between ramps it is the end value of the last one."""
    value = schedule.initial
    for ramp in schedule.ramps:
        if position < ramp.start:
            break
        if position >= ramp.start + ramp.length:
            value = ramp.to
        else:
            value = ramp.from_ + (ramp.to - ramp.from_) * (position - ramp.start) / ramp.length
    return value


def hyperparameters_at(schedules: SchedulesConfig, version: int, hero_steps: int) -> Hyperparameters:
    """Return all scheduled values at a version after ``hero_steps``."""
    found: list[ScheduleConfig] = [getattr(schedules, name) for name in SCHEDULED]
    return Hyperparameters(*(value_at(schedule, position_of(schedule, version, hero_steps)) for schedule in found))


def change_schedule(schedules: SchedulesConfig, name: str, start: int, to: float, length: int) -> SchedulesConfig:
    """Return the schedules with one value ramped from its value at ``start`` to ``to`` over ``length``, in its unit.

    Values before ``start`` do not change. A ramp that is active at ``start`` is cut there, and later ones are
    dropped, so applying a change twice equals applying it once. Raise ValueError for an unknown name or a value out of
    range.
    """
    schedule = _find_schedule(schedules, name)
    if start < 0 or length < 0:
        raise ValueError(f"start {start}, length {length}: at least 0 is required")
    before = _ramps_before(schedule, start)
    return _replace_ramps(schedules, name, (
        *before, RampConfig(start=start, length=length, from_=_end_value(schedule.initial, before), to=to)))


def restore_schedule(schedules: SchedulesConfig, name: str, start: int, earlier: ScheduleConfig) -> SchedulesConfig:
    """Return the schedules with one value following ``earlier`` from ``start`` on.

    Values before ``start`` do not change. Raise ValueError as `change_schedule` does, and for another unit.
    """
    schedule = _find_schedule(schedules, name)
    if start < 0:
        raise ValueError(f"start {start}: at least 0 is required")
    if earlier.unit != schedule.unit:
        raise ValueError(f"the earlier schedule counts {earlier.unit}, this one {schedule.unit}: change the value "
                         "instead")
    before = _ramps_before(schedule, start)
    target, current = value_at(earlier, start), _end_value(schedule.initial, before)
    ahead = []
    for ramp in earlier.ramps:
        if ramp.start >= start:
            ahead.append(ramp)
        elif ramp.start + ramp.length > start:
            ahead.append(RampConfig(start=start, length=ramp.start + ramp.length - start, from_=target, to=ramp.to))
    jump = () if current == target else (RampConfig(start=start, length=0, from_=current, to=target),)
    return _replace_ramps(schedules, name, (*before, *jump, *ahead))


def _find_schedule(schedules: SchedulesConfig, name: str) -> ScheduleConfig:
    if name not in SCHEDULED:
        raise ValueError(f"{name!r} is not scheduled; allowed: {', '.join(SCHEDULED)}")
    schedule: ScheduleConfig = getattr(schedules, name)
    return schedule


def _ramps_before(schedule: ScheduleConfig, position: int) -> tuple[RampConfig, ...]:
    """Return the ramps that begin before ``position``, the last one cut there if it is still active."""
    ramps = []
    for ramp in schedule.ramps:
        if ramp.start >= position:
            break
        if ramp.start + ramp.length > position:
            ramp = RampConfig(start=ramp.start, length=position - ramp.start, from_=ramp.from_,
                              to=value_at(schedule, position))
        ramps.append(ramp)
    return tuple(ramps)


def _end_value(initial: float, ramps: tuple[RampConfig, ...]) -> float:
    return ramps[-1].to if ramps else initial


def _replace_ramps(schedules: SchedulesConfig, name: str, ramps: tuple[RampConfig, ...]) -> SchedulesConfig:
    changed = _find_schedule(schedules, name).model_copy(update={"ramps": ramps})
    return SchedulesConfig.model_validate(schedules.model_copy(update={name: changed}).model_dump(by_alias=True))


def dump_schedules(schedules: SchedulesConfig) -> dict[str, Any]:
    """Return JSON values for the run's state, which `load_schedules` reads."""
    return schedules.model_dump(mode="json", by_alias=True)


def load_schedules(values: dict[str, Any]) -> SchedulesConfig:
    """Read the result of `dump_schedules`. Raise pydantic.ValidationError naming each wrong key."""
    return SchedulesConfig.model_validate(values)
