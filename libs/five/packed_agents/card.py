"""Card of a packed agent: what it is, how it was trained, and how strong it is.

``card.md`` is Markdown whose front matter, YAML between two lines of ``---``, is an `AgentCard`. The text below it is
generated from the card.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from five import yaml_core
from five.agent.surgery.strict_yaml import parse_yaml

FORMAT = 1
MAX_BYTES = 1 << 16  # of a card
FENCE = "---\n"
NAME = r"^[a-z0-9][a-z0-9-]{0,62}$"
HASH = r"^[0-9a-f]{16}$"
SHA256 = r"^[0-9a-f]{64}$"
FILE_NAME = r"^[a-z0-9][a-z0-9.-]{0,99}$"

Text = Annotated[str, Field(min_length=1, max_length=2000)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]
Temperature = Annotated[float, Field(ge=0.01, le=100)]


class Document(BaseModel):
    """Part of a packed agent's documents: frozen, strict, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class TrainingFacts(Document):
    """Facts of an agent's training: ``commit`` of the source, ``hours`` of wall time, ``parent`` (the packed agent that
    the training began with, or '')."""

    command: Text
    commit: Text
    run: Annotated[str, Field(pattern=NAME)]
    version: Count
    hero_steps: Count
    hours: Annotated[float, Field(ge=0, le=1e6)]
    hardware: Text
    cost: Text
    seeds: Annotated[list[Count], Field(min_length=1, max_length=64)]
    parent: Annotated[str, Field(max_length=200)] = ""


class BotScore(Document):
    """Result of the evaluation games against one bot; ``low`` and ``high`` are the 95 % interval of the score."""

    against: Annotated[str, Field(pattern=NAME)]
    games: Annotated[int, Field(ge=1, le=10**6)]
    won: Count
    drawn: Count
    lost: Count
    score: Share
    low: Share
    high: Share


class ChangedSetting(Document):
    """Setting of the game that the agent plays with, and the value that it was trained with."""

    key: Annotated[str, Field(pattern=r"^game\.[a-z_]{1,64}$")]
    value: bool | int | float
    trained: bool | int | float

    def __str__(self) -> str:
        return f"{self.key} {self.value} (trained with {self.trained})"


class CheckGame(Document):
    """Game that a loaded agent repeats: the first ``timesteps`` of one against a bot end in the state ``hash``."""

    against: Annotated[str, Field(pattern=NAME)]
    seed: Count
    timesteps: Annotated[int, Field(ge=1, le=10**6)]
    hash: Annotated[str, Field(pattern=HASH)]


class AgentCard(Document):
    """Card of a packed agent.

    ``rules`` is the revision of the game's rules that the evaluation was played by, ``layout`` the hash of the
    observations and actions, ``model_schema`` that of the tensors. ``games_file`` holds the games of ``scores``. The
    agent plays at ``temperature`` (`five.agent.model.temperature`), and ``five train --from`` begins there. It
    plays with ``settings`` of the game other than those of its training (`five.packed_agents.play_settings`).
    """

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    name: Annotated[str, Field(pattern=NAME)]
    summary: Text
    mode: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")]
    patch: Annotated[str, Field(pattern=r"^[a-z0-9.]{1,16}$")]
    heroes: Annotated[list[Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}$")]], Field(min_length=1, max_length=256)]
    license: Text
    training: TrainingFacts
    rules: Annotated[int, Field(ge=1, le=10**6)]
    layout: Annotated[str, Field(min_length=1, max_length=64)]
    model_schema: Annotated[str, Field(pattern=HASH)]
    parameters: Annotated[int, Field(ge=1, le=10**9)]
    weights_sha256: Annotated[str, Field(pattern=SHA256)]
    temperature: Temperature = 1.0
    settings: Annotated[list[ChangedSetting], Field(max_length=64)] = []
    scores: Annotated[list[BotScore], Field(min_length=1, max_length=64)]
    games_file: Annotated[str, Field(pattern=FILE_NAME)]
    replay_file: Annotated[str, Field(pattern=FILE_NAME)]
    check: CheckGame
    weaknesses: Annotated[list[Text], Field(min_length=1, max_length=32)]


def card_text(card: AgentCard) -> str:
    """Return the contents of ``card.md``."""
    header = yaml_core.dump(card.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)
    return f"{FENCE}{header}{FENCE}\n{_body(card)}"


def parse_card(text: bytes) -> AgentCard:
    """Return the card in a file's bytes. Raises ValueError naming the wrong key."""
    start, fence = FENCE.encode(), f"\n{FENCE}".encode()
    header, end, _ = text.removeprefix(start).partition(fence)
    if not text.startswith(start) or not end:
        raise ValueError("the card must begin with YAML between two lines of '---'")
    tree = parse_yaml(header)
    try:
        return AgentCard.model_validate(tree)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a document as text: its key and what is wrong."""
    problem, more = error.errors()[0], error.error_count() - 1
    key = ".".join(str(part) for part in problem["loc"]) or "(top)"
    return f"{key}: {problem['msg']}{f' (and {more} more)' if more else ''}"


def _body(card: AgentCard) -> str:
    training = card.training
    seeds = ", ".join(map(str, training.seeds))
    rows = [f"| {s.against} | {s.won} | {s.drawn} | {s.lost} | {100 * s.score:.0f} % ({100 * s.low:.0f} to "
            f"{100 * s.high:.0f}) |" for s in card.scores]
    facts = [("game", f"{card.mode}, patch {card.patch}, rules revision {card.rules}"),
             ("heroes", ", ".join(card.heroes)), ("trained by", f"`{training.command}`"), ("commit", training.commit),
             ("run and version", f"{training.run}, version {training.version}"),
             *([("began as", training.parent)] if training.parent else []),
             ("experience", f"{training.hero_steps:,} hero-steps in {training.hours:.1f} hours"),
             ("machine", training.hardware), ("cost", training.cost), ("seeds", seeds),
             *([("temperature", f"{card.temperature:g}; trained at 1")] if card.temperature != 1 else []),
             *([("settings", ", ".join(map(str, card.settings)))] if card.settings else []),
             ("parameters", f"{card.parameters:,}, stored as bfloat16"), ("license", card.license)]
    return "\n".join([
        f"# {card.name}", "", card.summary, "", "| | |", "|---|---|",
        *(f"| {name} | {value} |" for name, value in facts), "", "## Scores", "",
        f"Games of the packed weights in pairs with sides swapped, of `{card.games_file}`. A drawn game is half a win; "
        "intervals are 95 % intervals.", "", "| against | won | drawn | lost | score |", "|---|---|---|---|---|", *rows,
        "", "## Known weaknesses", "", *(f"- {weakness}" for weakness in card.weaknesses), "",
        "## Use", "", "```", f"five play --agent {card.name}", f"five eval --agent {card.name} --against scripted",
        f"five watch --agent {card.name}", f"five train --from {card.name}", "```", ""])
