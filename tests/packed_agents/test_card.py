"""Cards: the text, and errors that name the key."""

import pytest

from five import yaml_core
from five.packed_agents.card import FENCE, MAX_BYTES, card_text, parse_card
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.folder import CARD, PackedAgent


def test_a_card_survives_writing(shared_agent: PackedAgent) -> None:
    card = shared_agent.card
    assert parse_card(card_text(card).encode()) == card
    assert (shared_agent.path / CARD).read_text() == card_text(card)


def test_the_text_below_the_header_is_for_people(shared_agent: PackedAgent) -> None:
    card = shared_agent.card
    body = card_text(card).split(FENCE)[2]
    assert body.startswith("\n# tiny\n") and "5,000,000,000 hero-steps in 1.5 hours" in body
    assert body.count("| scripted-easy |") == 1 and "- It was never trained." in body


@pytest.mark.parametrize(("change", "problem"), [
    ({"rules": 0}, "rules"), ({"format": 2}, "format"), ({"weights_sha256": "0" * 63}, "weights_sha256"),
    ({"replay_file": "../other.replay"}, "replay_file"), ({"games_file": ".."}, "games_file"),
    ({"training": {"command": "make train"}}, "training.commit"), ({"strength": 1}, "strength"),
    ({"scores": []}, "scores"), ({"weaknesses": []}, "weaknesses"), ({"name": "a/b"}, "name")])
def test_a_wrong_key_is_named(shared_agent: PackedAgent, change: dict[str, object], problem: str) -> None:
    tree = shared_agent.card.model_dump(mode="json") | change
    with pytest.raises(ValueError, match=f"^{problem}: "):
        parse_card(f"{FENCE}{yaml_core.dump(tree)}{FENCE}".encode())


@pytest.mark.parametrize("text", [b"", b"# tiny\n", b"---\nname: tiny\n", b"---\nname: [\n---\n", b"---\n- 1\n---\n",
                                  b"---\na: &x 1\nb: *x\n---\n", b"---\n\xff\n---\n"])
def test_other_text_is_no_card(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse_card(text)


def test_a_damaged_card_is_named_by_its_path(agent: PackedAgent) -> None:
    path = agent.path / CARD
    path.write_text(path.read_text().replace("parameters: ", "parameters: about "))
    with pytest.raises(AgentUnavailable, match=rf"{path}: parameters: .*pack the agent again"):
        PackedAgent(agent.path).card  # noqa: B018 - the property reads the file
    path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(AgentUnavailable, match=f"{MAX_BYTES + 1} bytes"):
        PackedAgent(agent.path).card  # noqa: B018
    path.unlink()
    with pytest.raises(AgentUnavailable, match=f"{path}: No such file"):
        PackedAgent(agent.path).card  # noqa: B018
