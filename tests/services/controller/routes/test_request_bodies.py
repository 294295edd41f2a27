"""Limits of the values in request bodies: the allowed ones at each border, and the refused ones next to them."""

import math
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from five.services.controller.routes.anneal import AnnealRequest, ShareRequest
from five.services.controller.routes.play import OpenGameRequest
from five.services.controller.routes.rehearsal import RehearsalRequest
from five.services.controller.routes.revert import RevertRequest
from five.services.controller.routes.run import Reason
from five.services.controller.routes.schedules import RampRequest, RevertChangeRequest
from five.services.controller.routes.session import LoginRequest
from five.services.controller.routes.surgery import ApplyRequest, CheckRequest, DerivePlanRequest, PlanText

SAFE = 9007199254740991  # the largest integer that every JSON parser represents exactly
REASON = (["", "x" * 500], ["x" * 501, 5, None])
VERSION = ([0, SAFE], [-1, SAFE + 1, "5", 5.0, True, None])
EPOCH = ([None, 1, SAFE], [-1, SAFE + 1, "5", 5.0, True])
PLAN = (["x", "x" * 65536], ["", "x" * 65537, None])
ANNEAL = {"name": "patch", "overrides": {"patch": "7.19"}, "versions": 10}
RAMP = {"start": 0, "length": 0, "to": 0.5}
WISH = {"name": "wider", "overrides": ["model.lstm=16"]}


@pytest.mark.parametrize(("model", "body", "field", "limits"), [
    (Reason, {}, "reason", REASON), (RampRequest, RAMP, "reason", REASON),
    (RevertChangeRequest, {"start": 0}, "reason", REASON), (RevertRequest, {"to": 0}, "reason", REASON),
    (AnnealRequest, ANNEAL, "reason", REASON), (CheckRequest, {"plan": "x"}, "reason", REASON),
    (ApplyRequest, {"digest": "0" * 64}, "reason", REASON), (RehearsalRequest, {"plan": "x"}, "reason", REASON),
    (RampRequest, RAMP, "start", VERSION), (RampRequest, RAMP, "length", VERSION),
    (RampRequest, RAMP, "to", ([0, -1e300, 5], [math.nan, math.inf, None])),
    (RampRequest, RAMP, "epoch", ([0, *EPOCH[0]], EPOCH[1])),
    (RevertChangeRequest, {}, "start", ([None, *VERSION[0]], VERSION[1][:-1])),
    (RevertChangeRequest, {"start": 0}, "epoch", ([0, *EPOCH[0]], EPOCH[1])),
    (RevertRequest, {}, "to", VERSION), (RevertRequest, {"to": 0}, "epoch", (EPOCH[0], [0, *EPOCH[1]])),
    (RevertRequest, {"to": 0}, "warm_up_versions", ([0, 100_000], [-1, 100_001, "5", 5.0, True, None])),
    (AnnealRequest, ANNEAL, "name", (["a", "7.21-d", "x" * 48], ["", "x" * 49, "-a", ".a", "A", "a/b"])),
    (AnnealRequest, ANNEAL, "overrides", ([{"a": 1}], [{}, [], None])),
    (AnnealRequest, ANNEAL, "versions", ([1, 10_000_000], [0, 10_000_001, "5", 5.0, True, None])),
    (ShareRequest, {}, "share", ([0, 1, 0.5], [-0.001, 1.001, math.nan, None])),
    (DerivePlanRequest, WISH, "name", (["a", "x" * 63, "7-a"], ["", "x" * 64, "-a", "a.b", "A"])),
    (DerivePlanRequest, WISH, "overrides", ([["x" * 1000], ["x"] * 200], [[], ["x" * 1001], ["x"] * 201, "x"])),
    (DerivePlanRequest, WISH, "warm_up_versions", ([None, 0, 100_000], [-1, 100_001])),
    (PlanText, {}, "plan", PLAN), (CheckRequest, {}, "plan", PLAN), (RehearsalRequest, {}, "plan", PLAN),
    (ApplyRequest, {}, "digest", (["0" * 64, "af09" * 16], ["0" * 63, "0" * 65, "A" * 64, ""])),
    (ApplyRequest, {"digest": "0" * 64}, "hold", ([None, True, False], ["maybe", 2])),
    (OpenGameRequest, {}, "team", ([0, 1], [-1, 2, "1", 1.0, True])),
    (OpenGameRequest, {}, "heroes", ([[0], [4], [0, 1, 2, 3, 4]], [[], [-1], [5], ["1"], [0] * 6])),
    (OpenGameRequest, {}, "lineup", ([None, [["axe"], ["lion"] * 5], [["a"], ["x" * 64]]],
                                     [[], [["axe"]], [["axe"]] * 3, [[], ["axe"]], [["axe"] * 6, ["axe"]],
                                      [["x" * 65], ["axe"]], [[""], ["axe"]], [["Axe"], ["axe"]]])),
    (OpenGameRequest, {}, "with", (["agent", "random", "scripted-hard", "0", "9" * 15], ["", "ada", "9" * 16, "-1"])),
    (OpenGameRequest, {}, "against", (["newest", "scripted", "7"], ["", "ada", "9" * 16])),
    (OpenGameRequest, {}, "seed", ([None, 0, SAFE], [-1, SAFE + 1, "5", 5.0, True])),
    (LoginRequest, {}, "code", ([None, "x", "x" * 200], ["", "x" * 201])),
    (LoginRequest, {}, "token", ([None, "x", "x" * 500], ["", "x" * 501]))])
def test_a_field_has_these_limits(model: type[BaseModel], body: dict[str, Any], field: str,
                                  limits: tuple[list[Any], list[Any]]) -> None:
    allowed, refused = limits
    for value in allowed:
        assert model.model_validate({**body, field: value}).model_dump(by_alias=True)[field] == value
    for value in refused:
        with pytest.raises(ValidationError):
            model.model_validate({**body, field: value})
            raise AssertionError(f"{model.__name__}.{field}: {value!r} was accepted")


@pytest.mark.parametrize(("model", "body", "defaults"), [
    (Reason, {}, {"reason": ""}), (RampRequest, RAMP, {"reason": "", "epoch": None}),
    (RevertChangeRequest, {}, {"start": None, "reason": "", "epoch": None}),
    (RevertRequest, {"to": 0}, {"warm_up_versions": 0, "epoch": None, "reason": ""}),
    (DerivePlanRequest, WISH, {"hold": False, "warm_up_versions": None}),
    (ApplyRequest, {"digest": "0" * 64}, {"hold": None, "reason": ""}),
    (OpenGameRequest, {}, {"team": 0, "heroes": [0], "lineup": None, "with": "agent", "against": "newest",
                           "seed": None}),
    (RehearsalRequest, {"plan": "x"}, {"versions": 10, "games": 100, "minutes": 60.0, "reason": ""})])
def test_omitted_fields_have_these_values(model: type[BaseModel], body: dict[str, Any], defaults: dict[str, Any]
                                          ) -> None:
    assert model.model_validate(body).model_dump(by_alias=True) == {**body, **defaults}
    with pytest.raises(ValidationError):
        model.model_validate({**body, "unknown": 1})
