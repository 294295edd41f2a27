import importlib
from typing import Any

import pytest

from five.run.load import load


class _Started(Exception):
    """The service would start now."""


@pytest.mark.parametrize(("service", "computes"), [
    ("rollout", "inference"), ("inference", "inference"), ("optimizer", "optimizer")])
def test_long_time_slices_where_cpus_compute(
        monkeypatch: pytest.MonkeyPatch, service: str, computes: str) -> None:
    """A GPU must not wait for the end of a time slice, nor for a rollout's requests at its end."""
    module = importlib.import_module(f"five.services.{service}.__main__")
    given: dict[str, Any] = {}

    def start(*arguments: Any, **options: Any) -> None:
        given.update(options)
        raise _Started

    monkeypatch.setattr(module, "start", start)
    with pytest.raises(_Started):
        module.main()
    other = {"inference": "optimizer", "optimizer": "inference"}[computes]
    assert given["long_time_slices"](load("laptop-1v1", [f"services.{other}.device=cuda"]))
    assert not given["long_time_slices"](load("laptop-1v1", [f"services.{computes}.device=cuda"]))
