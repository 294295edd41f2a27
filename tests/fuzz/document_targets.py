"""Targets of documents of the agent and its league: anneals, standings, evidence, models, plans and operations."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dota.vec_game import STATS
from five.agent.anneal.document import Anneal, AnnealRamp
from five.agent.anneal.guard import Pair
from five.agent.anneal.pair_records import pair_key, pair_to_json, parse_pairs
from five.agent.anneal.variants import Variant
from five.agent.config import LeagueConfig
from five.agent.draft.evidence import DraftEvidence
from five.agent.model.schema import ModelSchema, TensorSpec
from five.agent.standings import FORMAT, FORMAT_ROW, RATED, Standing, parse_standings
from five.agent.surgery import AgentSpec, AppliedMigration, Plan
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest, new_operation
from five.services.controller.surgery.rehearsals import RehearsalWorker
from five.services.evaluator import match_progress
from five.services.evaluator.matches import Pairing, TeamPlayer
from five.services.opponents.pool import _league
from tests.fuzz.mutators import mutate_yaml
from tests.fuzz.record_targets import KEYS, client, json_target, run_state, same
from tests.fuzz.targets import Target
from tests.services.optimizer_cases import GAME, MODEL


def match_rows(data: bytes) -> None:
    """Load a match's progress from its rows."""
    client().delete(KEYS.table(match_progress.TABLE))
    table = run_state().table(match_progress.TABLE)
    client().hset(KEYS.table(match_progress.TABLE), "m@1:0", data)  # type: ignore[arg-type]
    match_progress.load(table, "m@1", [Pairing(TeamPlayer("a", version=1), TeamPlayer("b", version=2), 0, number=0)])


def evidence(tree: Any) -> None:
    """Decode draft evidence; an accepted one survives encoding."""
    found = DraftEvidence.from_json(tree)
    same(repr(DraftEvidence.from_json(found.to_json()).to_json()), repr(found.to_json()))
    found.calibration()


def anneal(tree: Any) -> None:
    """Decode an anneal's document; an accepted one survives encoding."""
    found = Anneal.model_validate(tree)
    same(Anneal.model_validate(json.loads(found.model_dump_json())).model_dump_json(), found.model_dump_json())
    found.share(1000)


def standings(tree: Any) -> None:
    """Decode the rows of the ratings."""
    if isinstance(tree, dict):
        for standing in parse_standings(tree):
            assert standing.games >= 0


def model_schema(data: bytes) -> None:
    """Decode a model's schema; an accepted one survives encoding."""
    found = ModelSchema.from_json(data.decode("utf-8", "replace"))
    assert ModelSchema.from_json(found.to_json()).id == found.id


def agent_spec(data: bytes) -> None:
    """Decode an agent's specification; an accepted one survives encoding."""
    found = AgentSpec.from_json(data.decode("utf-8", "replace"))
    same(AgentSpec.from_json(found.to_json()).to_json(), found.to_json())


def migration(data: bytes) -> None:
    """Decode an applied plan."""
    AppliedMigration.from_json(data.decode("utf-8", "replace"))


def plan(data: bytes) -> None:
    """Decode a plan and apply it to the specification of a small agent; an accepted one survives encoding."""
    found = Plan.from_yaml(data)
    assert Plan.from_yaml(found.to_yaml()).digest == found.digest
    spec = AgentSpec(GAME, MODEL)
    found.model_copy(update={"parent": spec.schema}).target(spec, 10**7)


def plans() -> list[bytes]:
    """Return plans with several kinds of steps."""
    parent = AgentSpec(GAME, MODEL).schema
    steps = ("{kind: grow_lstm, to: 16}", "{kind: game, values: {max_game_seconds: 900}}",
             "{kind: widen, layer: unit, to: 8}", "{kind: slots, slots: {allied_creeps: 3}}")
    return [f"name: wider\nparent: {parent}\nsteps:\n- {step}\nhold: true\nbounds: {{mean_kl: 0.1}}\n".encode()
            for step in steps]


def applied() -> bytes:
    """Return an applied plan."""
    return AppliedMigration(Plan.from_yaml(plans()[0]), AgentSpec(GAME, MODEL)).to_json().encode()


def operation(tree: Any) -> None:
    """Decode an operation's document."""
    Operation.model_validate(tree)


def _operation() -> Any:
    return json.loads(new_operation("check-1", OperationKind.CHECK, "ada", OperationRequest(name="a"), 1.0, "running"
                                    ).model_dump_json())


def _of_tree(decode: Callable[[Any], object]) -> Callable[[bytes], object]:
    """Return a decoder of JSON values as a decoder of text; only valid JSON reaches it."""
    return lambda data: decode(_parsed(data))


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None


PAIR = Pair(Variant("old"), 3, 7, 0.5, (1.0, 0.0))
STANDING = Standing("version-3", 1.0, 0.5, 1, 0.1, False, 0, {"random": [1, 2, 3]}, {"random": [0.5, 0.4, 0.6]})
TARGETS = [
    json_target("anneal-document", _of_tree(anneal),
                Anneal(id="a", overrides={"patch": "7.21d"}, base=0, began=0,
                       ramp=AnnealRamp(start=0, length=4)).model_dump_json()),
    json_target("guard-pairs", _of_tree(lambda tree: isinstance(tree, dict) and parse_pairs(tree, "a/1")),
                {pair_key("a/1", Variant("old"), 3): pair_to_json(PAIR)}),
    json_target("league-rows", _of_tree(lambda tree: isinstance(tree, dict) and _league(LeagueConfig(), tree)),
                {"version:3": [0.5, 3, 2], "last_added": 3}),
    json_target("standings", _of_tree(standings), {FORMAT_ROW: FORMAT, f"{RATED}version-3": asdict(STANDING)}),
    json_target("match-progress", match_rows,
                {"version": 3, "score": 1.0, "seconds": 30.5, "at": 3.5, "replay": "", "agent": [1.5] * len(STATS),
                 "opponent": [2.5] * len(STATS)}),
    json_target("draft-evidence", _of_tree(evidence), DraftEvidence(("lion", "sven")).to_json()),
    json_target("operation", _of_tree(operation), _operation()),
    json_target("rehearsal-worker", RehearsalWorker.model_validate_json, {"host": "a", "pid": 3},
                decoders=("five/services/controller/surgery/rehearsals.py:Rehearsals.available_worker",)),
    json_target("model-schema", model_schema,
                ModelSchema((TensorSpec("w", (3, 4), "float32"),), "a" * 16, MODEL).to_json(),
                decoders=("five/agent/model/schema.py:ModelSchema.from_json",)),
    json_target("agent-spec", agent_spec, AgentSpec(GAME, MODEL).to_json(),
                decoders=("five/agent/surgery/spec.py:AgentSpec.from_json",)),
    json_target("applied-plan", migration, applied(),
                decoders=("five/agent/surgery/chain.py:AppliedMigration.from_json",)),
    Target("plan", "files", plan, plans, decoders=(
        "five/agent/surgery/plan.py:Plan.from_yaml", "five/agent/surgery/strict_yaml.py:parse_yaml",
        "five/services/controller/surgery/plans.py:read_plan"), mutate=mutate_yaml),
]
