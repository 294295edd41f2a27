"""Targets of the files of a packed agent: card, configuration, games and weights, which people get from strangers."""

import functools
import hashlib
import json

from five.agent.surgery import AgentSpec
from five.packed_agents.card import FENCE, card_text, parse_card
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.folder import CONFIG, PackedAgent
from five.packed_agents.games import parse_games
from five.packed_agents.weights import read_weights, write_weights
from five.run.load import load
from tests.e2e.running import TINY
from tests.fuzz.file_targets import MUTATE_TENSORS, folder, store_file
from tests.fuzz.mutators import mutate_json, mutate_yaml, within
from tests.fuzz.targets import Target
from tests.packed_agents.tiny_agent import card, games, random_tensors


@functools.cache
def spec() -> AgentSpec:
    """Return the specification of a tiny agent."""
    rows = [f"model.{space}_embedding=1" for space in ("unit", "modifier", "ability", "item")]
    config = load("laptop-1v1", [*TINY, *rows])  # small, so that mutated files are whole
    return AgentSpec(config.game, config.model)


def card_file() -> bytes:
    """Return a card."""
    return card_text(card()).encode()


def decode_card(data: bytes) -> None:
    """Read a card; an accepted one survives writing."""
    found = parse_card(data)
    assert parse_card(card_text(found).encode()) == found


def _card_header(data: bytes) -> bytes:
    return data.split(FENCE.encode())[1]


def _with_card_header(data: bytes, header: bytes) -> bytes:
    return FENCE.encode() + header + b"\n" + FENCE.encode()


def decode_games(data: bytes) -> None:
    """Read a file of evaluation games and compute their scores; accepted ones survive writing."""
    found = parse_games(data)
    assert parse_games(found.model_dump_json().encode()) == found
    found.scores()


def decode_agent_config(data: bytes) -> None:
    """Read the configuration of a packed agent."""
    PackedAgent(store_file(data, CONFIG).parent).config  # noqa: B018 - the property reads the file


def weights_file() -> bytes:
    """Return a file of weights."""
    path = folder() / "written.safetensors"
    write_weights(path, random_tensors(spec()))
    return path.read_bytes()


def decode_weights(data: bytes) -> None:
    """Read a file of weights whose digest the card has."""
    read_weights(store_file(data, "weights.safetensors"), spec(), hashlib.sha256(data).hexdigest())


TARGETS = [
    Target("agent-card", "files", decode_card, lambda: [card_file()], mutate=within(
        _card_header, _with_card_header, mutate_yaml)),
    Target("agent-games", "files", decode_games, lambda: [games().model_dump_json().encode()], decoders=(
        "five/packed_agents/games.py:parse_games",), mutate=mutate_json),
    Target("agent-config", "files", decode_agent_config, lambda: [json.dumps({"name": "tiny", "seed": 3}).encode()],
           (AgentUnavailable,), mutate=mutate_yaml),
    Target("agent-weights", "files", decode_weights, lambda: [weights_file()], (AgentUnavailable,), decoders=(
        "five/packed_agents/weights.py:read_weights",), mutate=MUTATE_TENSORS),
]
