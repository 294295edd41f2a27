import json

import pytest
from pydantic import ValidationError

from five.agent.config import ScheduleConfig, SchedulesConfig
from five.agent.schedules import (
    Hyperparameters,
    change_schedule,
    counts_hero_steps,
    dump_schedules,
    hyperparameters_at,
    load_schedules,
    restore_schedule,
    value_at,
)


def schedule(initial, *ramps):
    return ScheduleConfig.model_validate(
        {"initial": initial, "ramps": [dict(zip(("start", "length", "from", "to"), r, strict=True)) for r in ramps]})


@pytest.mark.parametrize(("version", "value"), [
    (0, 0.3), (14_999, 0.3), (15_000, 0.3), (16_000, 0.55), (17_000, 0.8), (20_000, 0.8), (30_000, 0.8),
    (30_001, 1.0), (99_999, 1.0)])
def test_value_is_piecewise_linear(version, value):
    s = schedule(0.3, (15_000, 2_000, 0.3, 0.8), (30_001, 0, 0.8, 1.0))
    assert value_at(s, version) == pytest.approx(value)


def test_value_without_ramps_is_constant():
    assert value_at(schedule(0.01), 0) == value_at(schedule(0.01), 10**9) == 0.01


def test_all_values_of_a_version():
    s = SchedulesConfig(gae_horizon_seconds=schedule(180, (10, 10, 180, 360)))
    assert hyperparameters_at(s, 15, 0) == Hyperparameters(5e-5, 0.01, 0.3, 270)


def test_change_starts_from_the_present_value():
    s = SchedulesConfig(learning_rate=schedule(1e-3, (0, 10, 1e-3, 2e-3), (100, 50, 2e-3, 5e-4)))
    changed = change_schedule(s, "learning_rate", 120, 1e-4, 10)
    before = [value_at(s.learning_rate, v) for v in range(121)]
    assert [value_at(changed.learning_rate, v) for v in range(121)] == pytest.approx(before)
    assert value_at(changed.learning_rate, 125) == pytest.approx((before[-1] + 1e-4) / 2)
    assert value_at(changed.learning_rate, 10_000) == pytest.approx(1e-4)
    assert changed.entropy_coefficient == s.entropy_coefficient


def test_change_drops_later_ramps():
    s = SchedulesConfig(team_spirit=schedule(0.3, (100, 10, 0.3, 0.8)))
    assert value_at(change_schedule(s, "team_spirit", 50, 0.5, 0).team_spirit, 200) == 0.5


def test_two_changes_at_one_version():
    s = change_schedule(change_schedule(SchedulesConfig(), "learning_rate", 5, 1e-4, 10), "learning_rate", 5, 2e-4, 0)
    assert value_at(s.learning_rate, 4) == 5e-5
    assert value_at(s.learning_rate, 5) == 2e-4


def test_schedules_json_round_trip():
    s = change_schedule(SchedulesConfig(), "gae_horizon_seconds", 7, 360, 3)
    assert load_schedules(json.loads(json.dumps(dump_schedules(s)))) == s


def test_invalid_schedule_is_rejected():
    with pytest.raises(ValidationError, match="overlap"):
        schedule(0, (10, 10, 0, 1), (15, 1, 1, 0))
    with pytest.raises(ValidationError, match=r"team_spirit 1\.2"):
        change_schedule(SchedulesConfig(), "team_spirit", 1, 1.2, 1)
    with pytest.raises(ValueError, match="not scheduled"):
        change_schedule(SchedulesConfig(), "ppo_clip", 1, 0.1, 1)
    with pytest.raises(ValidationError, match="lenght"):
        ScheduleConfig.model_validate({"initial": 1, "ramps": [{"start": 1, "lenght": 1, "from": 1, "to": 1}]})


@pytest.mark.parametrize("length", [0, 7])
def test_change_is_idempotent(length):
    s = SchedulesConfig(learning_rate=schedule(1e-3, (0, 10, 1e-3, 2e-3), (20, 50, 2e-3, 5e-4)))
    once = change_schedule(s, "learning_rate", 40, 1e-4, length)
    assert change_schedule(once, "learning_rate", 40, 1e-4, length) == once


@pytest.mark.parametrize(("version", "length"), [(-1, 0), (0, -1), (-1, -1), (5, -1)])
def test_negative_version_or_length_is_rejected(version, length):
    with pytest.raises(ValueError, match="at least 0"):
        change_schedule(SchedulesConfig(), "learning_rate", version, 1e-4, length)
    if version < 0:
        with pytest.raises(ValueError, match="at least 0"):
            restore_schedule(SchedulesConfig(), "learning_rate", version, schedule(1e-3))


def ramps(s):
    return [(ramp.start, ramp.length, ramp.from_, ramp.to) for ramp in s.learning_rate.ramps]


def test_change_at_version_0_replaces_everything():
    s = SchedulesConfig(learning_rate=schedule(1e-3, (0, 10, 1e-3, 2e-3), (20, 5, 2e-3, 1e-3)))
    assert ramps(change_schedule(s, "learning_rate", 0, 5e-4, 0)) == [(0, 0, 1e-3, 5e-4)]


def test_change_at_the_ends_of_a_ramp():
    """At its start the ramp is dropped, inside it is cut, and at its end it is whole."""
    s = SchedulesConfig(learning_rate=schedule(1e-3, (10, 10, 1e-3, 2e-3)))
    for version, before in ((10, []), (11, [(10, 1, 1e-3, pytest.approx(1.1e-3))]),
                            (19, [(10, 9, 1e-3, pytest.approx(1.9e-3))]), (20, [(10, 10, 1e-3, 2e-3)]),
                            (21, [(10, 10, 1e-3, 2e-3)])):
        *kept, last = ramps(change_schedule(s, "learning_rate", version, 5e-4, 3))
        assert kept == before
        assert last == (version, 3, pytest.approx(value_at(s.learning_rate, version)), 5e-4)


@pytest.mark.parametrize(("version", "expected"), [
    (10, [(10, 10, 1e-3, 2e-3)]), (15, [(15, 0, 1e-3, 1.5e-3), (15, 5, 1.5e-3, 2e-3)]),
    (20, [(20, 0, 1e-3, 2e-3)]), (25, [(25, 0, 1e-3, 2e-3)])])
def test_restored_ramps_have_no_empty_parts(version, expected):
    """A ramp that ended by then is a jump to its end value, one that is active goes on."""
    earlier = schedule(1e-3, (10, 10, 1e-3, 2e-3))
    back = restore_schedule(SchedulesConfig(learning_rate=schedule(1e-3)), "learning_rate", version, earlier)
    assert ramps(back) == [tuple(pytest.approx(value) for value in ramp) for ramp in expected]


def test_restore_without_a_difference_adds_nothing():
    s = SchedulesConfig(learning_rate=schedule(1e-3, (10, 10, 1e-3, 2e-3)))
    assert restore_schedule(s, "learning_rate", 30, schedule(2e-3)) == s


@pytest.mark.parametrize("version", [0, 5, 40, 45, 60, 200])
def test_restore_keeps_earlier_versions(version):
    earlier = schedule(1e-3, (0, 10, 1e-3, 2e-3), (20, 50, 2e-3, 5e-4), (100, 10, 5e-4, 1e-4))
    s = SchedulesConfig(learning_rate=earlier)
    changed = change_schedule(s, "learning_rate", 40, 7e-4, 12)
    back = restore_schedule(changed, "learning_rate", version, earlier)
    for v in range(250):
        expected = value_at(changed.learning_rate if v < version else earlier, v)
        assert value_at(back.learning_rate, v) == pytest.approx(expected), v


def in_hero_steps(initial, *ramps):
    return schedule(initial, *ramps).model_copy(update={"unit": "hero_steps"})


def test_ramp_in_hero_steps_ignores_the_version():
    s = SchedulesConfig(gae_horizon_seconds=in_hero_steps(180, (1_000_000, 1_000_000, 180, 360)),
                        team_spirit=schedule(0.3, (10, 10, 0.3, 0.5)))
    assert hyperparameters_at(s, 15, 1_500_000) == Hyperparameters(5e-5, 0.01, pytest.approx(0.4), 270)
    assert hyperparameters_at(s, 10**6, 0).gae_horizon_seconds == 180
    assert counts_hero_steps(s) and not counts_hero_steps(SchedulesConfig())


def test_change_and_restore_keep_the_unit():
    s = SchedulesConfig(learning_rate=in_hero_steps(1e-3, (100, 100, 1e-3, 2e-3)))
    changed = change_schedule(s, "learning_rate", 150, 5e-4, 10)
    assert changed.learning_rate.unit == "hero_steps" and value_at(changed.learning_rate, 155) == pytest.approx(1e-3)
    back = restore_schedule(changed, "learning_rate", 170, s.learning_rate)
    assert value_at(back.learning_rate, 190) == pytest.approx(1.9e-3)
    with pytest.raises(ValueError, match="counts versions, this one hero_steps"):
        restore_schedule(s, "learning_rate", 1, schedule(1e-3))
