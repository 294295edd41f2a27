"""Every target on its valid inputs and on stored inputs, which past runs of the fuzzer found."""

import pytest

from tests.fuzz.targets import GROUPS, Finding, Target, all_targets, describe, origin


@pytest.mark.parametrize("group", GROUPS)
def test_targets_keep_their_contract_on_stored_inputs(group: str) -> None:
    for target in all_targets().values():
        if target.group == group:
            for name, data in target.seeds.items():
                accepted = target.accepts(data)
                # A target that refuses its own valid inputs would not reach the code behind the first check.
                assert accepted or not name.startswith("valid-") or target.name in REFUSED, (target.name, name)


# Their valid inputs meet a run that has no such game, version or owner.
REFUSED = {"play-match", "play-close", "publisher-lease", "blob-owner"}


def _target(error: Exception) -> Target:
    def decode(data: bytes) -> None:
        raise error
    return Target("a", "wire", decode, lambda: [b"x"])


def test_undocumented_exception_is_a_finding() -> None:
    assert not _target(ValueError("refused")).accepts(b"")
    with pytest.raises(Finding, match="a: KeyError in unknown: 'digest'"):
        _target(KeyError("digest")).accepts(b"")


def test_slow_input_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.targets.MAX_CPU_SECONDS", 0.0)
    with pytest.raises(Finding, match="s of processor time for 3 bytes"):
        Target("a", "wire", lambda data: sum(range(100_000)), lambda: []).accepts(b"abc")


def test_finding_names_the_function_of_the_project() -> None:
    from rapid.store.record import RunRecord

    try:
        RunRecord.from_json(b"{")
    except ValueError as error:
        assert origin(error) == "record.py:from_json" and describe(error).startswith("ValueError in record.py:")
