import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from five.agent.config import BufferConfig
from five.agent.learning.pacing import Pacer, ReuseMeter, WaitMeter

BATCH = 10


def pacer(**changes):
    settings = dict(capacity_samples=400, minimum_samples=BATCH, sample_reuse=1.0, reuse_window_batches=8,
                    admission_batches=4)
    return Pacer(BufferConfig(**{**settings, **changes}), BATCH)


def step(p):
    p.on_consumed(BATCH)


def test_no_step_below_minimum_samples():
    p = pacer(minimum_samples=30)
    p.on_received(29)
    assert not p.may_step(29)
    p.on_received(1)
    assert p.may_step(30)


def test_minimum_is_at_least_a_batch():
    p = pacer(minimum_samples=1)
    while p.may_admit(BATCH - 1) and p.received < 1000:
        p.on_received(BATCH - 1)
    assert p.received >= 1000  # the buffer cannot fill a batch, so intake stays open
    assert not p.may_step(BATCH - 1)


def test_limits_are_the_configured_ones():
    """Minimum 30, credit of at most 8 batches, intake up to a credit of 4 batches; each at its edge."""
    p = pacer(minimum_samples=30)
    p.on_received(4 * BATCH)
    assert p.credit == 4 * BATCH and p.may_step(30) and not p.may_step(29)
    assert p.may_admit(30)
    p.on_received(1)
    assert not p.may_admit(30) and p.may_admit(29)
    p.on_received(4 * BATCH - 1)
    assert (p.credit, p.forgone) == (8 * BATCH, 0.0)
    p.on_received(3)
    assert (p.credit, p.forgone) == (8 * BATCH, 3.0)
    assert p.state_dict() == {"received": 83, "consumed": 0, "forgone": 3.0}


@pytest.mark.parametrize("batch", [0, -1])
def test_batch_without_samples_is_rejected(batch):
    with pytest.raises(ValueError, match="at least 1"):
        Pacer(BufferConfig(), batch)
    assert Pacer(BufferConfig(), 1).batch_samples == 1


def test_step_without_credit_waits():
    p = pacer()
    p.on_received(BATCH)
    step(p)
    assert p.credit == 0 and p.may_step(BATCH)
    p.on_consumed(1)
    assert p.credit == -1 and not p.may_step(BATCH) and p.may_admit(400)


def test_resume_without_credit_forgoes_nothing():
    p = pacer()
    p.load_state_dict({"received": 20, "consumed": 20, "forgone": 0.0})
    assert (p.credit, p.forgone) == (0, 0.0)
    p.load_state_dict({"received": 100, "consumed": 40, "forgone": 15.0})
    assert (p.credit, p.forgone) == (0, 60.0)


def test_fast_optimizer_waits_for_samples():
    p = pacer()
    p.on_received(BATCH)
    taken = 0
    while p.may_step(BATCH):
        step(p)
        taken += 1
    assert taken == 2  # consumed <= received + batch
    assert p.consumed == p.received + BATCH
    p.on_received(BATCH - 1)
    assert not p.may_step(2 * BATCH - 1)
    p.on_received(1)
    assert p.may_step(2 * BATCH)


@pytest.mark.parametrize("target", [0.5, 1.0, 2.0])
def test_reuse_converges_to_its_target(target):
    p = pacer(sample_reuse=target)
    for _ in range(1000):
        p.on_received(7)
        while p.may_step(400):
            step(p)
    assert p.consumed / p.received == pytest.approx(target, rel=0.01)
    assert p.consumed <= target * p.received + BATCH


def test_credit_is_bounded_by_the_window():
    p = pacer()
    p.on_received(100_000)  # while the optimizer was idle
    assert p.credit == 8 * BATCH
    taken = 0
    while p.may_step(400):
        step(p)
        taken += 1
    assert taken == 9
    received, consumed = p.received, p.consumed
    for _ in range(100):
        p.on_received(BATCH)
        while p.may_step(400):
            step(p)
    assert p.consumed - consumed == p.received - received


def test_intake_waits_for_a_slow_optimizer():
    p = pacer()
    while p.may_admit(100):
        p.on_received(5)
    assert p.credit == 4 * BATCH + 5
    assert p.may_step(100)
    step(p)
    assert p.may_admit(100)


def test_intake_opens_when_samples_expire():
    p = pacer()
    while p.may_admit(100):
        p.on_received(5)
    assert not p.may_admit(100)
    assert p.may_admit(BATCH - 1)  # all samples expired, so intake must open


def test_resume_drops_positive_credit():
    p = pacer()
    p.on_received(60)
    step(p)
    resumed = pacer()
    resumed.load_state_dict(p.state_dict())
    assert (resumed.received, resumed.consumed, resumed.credit) == (60, 10, 0)
    assert not resumed.may_step(0)
    assert resumed.may_admit(0)
    resumed.on_received(BATCH)
    assert resumed.may_step(BATCH)


def test_resume_keeps_negative_credit():
    p = pacer()
    p.on_received(BATCH)
    step(p)
    step(p)
    resumed = pacer()
    resumed.load_state_dict(p.state_dict())
    assert resumed.credit == -BATCH


def test_resume_with_a_lower_reuse_waits_for_a_batch_at_most():
    p = pacer(sample_reuse=2.0)
    p.received, p.consumed = 1000, 2000
    for _ in range(2):  # also when the run is resumed once more
        resumed = pacer(sample_reuse=1.0)
        resumed.load_state_dict(p.state_dict())
        assert (resumed.credit, resumed.received, resumed.consumed) == (-BATCH, 1000, 2000)
        p = resumed
    resumed.on_received(BATCH - 1)
    assert not resumed.may_step(BATCH)
    resumed.on_received(1)
    assert resumed.may_step(BATCH)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["receive", "step", "expire"]), min_size=20, max_size=300),
       st.sampled_from([0.25, 0.5, 1.0, 3.0]), st.integers(1, 16), st.integers(1, 60))
def test_intake_and_learning_never_both_wait(events, target, arriving, minimum):
    p = pacer(sample_reuse=target, minimum_samples=minimum)
    buffered = 0
    for event in events:
        can_step, can_admit = p.may_step(buffered), p.may_admit(buffered)
        assert can_step or can_admit
        if event == "receive" and can_admit:
            p.on_received(arriving)
            buffered = min(buffered + arriving, 400)
        elif event == "step" and can_step:
            step(p)
        elif event == "expire":
            buffered = 0
        assert p.consumed <= target * p.received + BATCH
        assert -BATCH <= p.credit <= 8 * BATCH


@pytest.mark.parametrize("speed", [0.1, 1, 10])
def test_reuse_target_holds_for_any_rollout_speed(speed):
    """Consumes one batch a second while ``speed`` batches a second are offered."""
    p, offered, buffered = pacer(), 0.0, 0
    for _ in range(3000):
        offered = min(offered + speed * BATCH, 3 * BATCH)
        while offered >= 5 and p.may_admit(buffered):
            offered -= 5
            p.on_received(5)
            buffered = min(buffered + 5, 400)
        if p.may_step(buffered):
            step(p)
    assert p.consumed / p.received == pytest.approx(1.0, abs=0.05)


def test_reuse_meter_window():
    meter = ReuseMeter(window_seconds=10)
    assert meter.value(0) is None
    meter.on_received(100, 0)
    meter.on_consumed(100, 1)
    meter.on_consumed(100, 2)
    assert meter.value(2) == 2.0
    meter.on_received(50, 11.5)
    assert meter.value(11.5) == 2.0  # 100 consumed at 2, 50 received
    assert meter.value(12.1) == 0.0
    assert meter.value(30) is None
    assert meter.rates(30) == (0.0, 0.0)


def test_reuse_meter_counts_five_minutes_by_default():
    meter = ReuseMeter()
    meter.on_received(10, 0)
    meter.on_consumed(30, 0)
    assert meter.value(300) == 3.0 and meter.rates(300) == (10 / 300, 30 / 300)
    assert meter.value(300.001) is None


def test_reuse_meter_rates_at_the_first_instant_are_finite():
    meter = ReuseMeter()
    meter.on_received(2, 7)
    assert meter.rates(7) == pytest.approx((2e9, 0.0))


def test_reuse_meter_rates():
    meter = ReuseMeter(window_seconds=60)
    for second in range(11):
        meter.on_received(20, second)
        meter.on_consumed(10, second)
    assert meter.rates(11) == pytest.approx((20.0, 10.0))


def test_running_waits_count() -> None:
    now = [0.0]
    meter = WaitMeter(lambda: now[0])
    assert meter.seconds == 0.0 and not meter.is_waiting
    with meter:
        now[0] = 3.0
        assert meter.seconds == 3.0 and meter.is_waiting
        meter.begin()
        now[0] = 4.0
        assert meter.seconds == 5.0
    now[0] = 6.0
    assert meter.seconds == 7.0
    meter.end()
    meter.end()  # no wait is running
    now[0] = 99.0
    assert meter.seconds == 7.0 and not meter.is_waiting


def test_failed_wait_ends() -> None:
    meter = WaitMeter()
    with pytest.raises(ValueError), meter:
        raise ValueError
    assert not meter.is_waiting
