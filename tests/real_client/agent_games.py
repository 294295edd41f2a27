"""Games of a kept agent on the fake client, played through the adapter from world states.

    python -m tests.real_client.agent_games first-mid scripted --pairs 50 --out games.json
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dota.config import GameConfig, evaluation_game
from five.packed_agents.folder import PackedAgent, find_agent
from five.real_client.client_process import ClientOptions
from five.real_client.installation import find_installation
from five.real_client.policy_player import PolicyPlayer
from five.real_client.session import Session, SessionOptions, play
from tests.real_client.fake_faults import FakeInstallation, FakeSettings
from tests.real_client.fake_installation import free_ports_options, install_fake

TEAMS = (2, 3)  # Radiant, Dire
PREFIX = "npc_dota_hero_"


class AgentGame(NamedTuple):
    """A finished game. ``side``: 0 if the agent was Radiant. ``score`` of the agent: 1 won, 0.5 drawn, 0 lost.
    ``answers``: how often its orders ended with each refusal, the empty text for those that were executed."""

    pair: int
    side: int
    score: float
    seconds: float
    answers: dict[str, int]


def line_ups(game: GameConfig, seed: int) -> dict[int, tuple[str, ...]]:
    """Return five heroes for each team, drawn from the game's pool by the seed."""
    random = np.random.default_rng(seed)
    pool = [PREFIX + name for name in game.hero_pool]
    if game.heroes_per_team == 1:
        return {team: (str(random.choice(pool)),) * 5 for team in TEAMS}
    return {team: tuple(random.choice(pool, 5, replace=False).tolist()) for team in TEAMS}


def play_game(fake: FakeInstallation, client: ClientOptions, agent: PackedAgent, bot: str, pair: int, side: int,
              **faults: object) -> tuple[AgentGame, PolicyPlayer]:
    """Play a game of the agent against a bot. Both games of a pair have one seed; the line-ups change sides too."""
    game = evaluation_game(agent.config.game)
    fake.write(FakeSettings.model_validate({"game": game.model_dump_json(), "bot": bot, "seed": pair, **faults}))
    heroes = line_ups(game, pair)
    if side == 1:
        heroes = {2: heroes[3], 3: heroes[2]}
    own = TEAMS[side]
    control = {own: "agent", TEAMS[1 - side]: "builtin"}
    options = SessionOptions(control, heroes, ClientOptions(ticks=game.frameskip, ports=client.ports), scripted=True)
    player = PolicyPlayer(agent.policy(), game, 2 * pair + side)
    with Session(find_installation(fake.game, "linux"), options) as session:
        winner = play(session, {own: player})
    seconds = float(player.game.time)
    drawn = seconds >= game.max_game_seconds - 1
    calls = [json.loads(line) for line in fake.calls.read_text().splitlines()]
    answers = Counter(call["refused"] for call in calls if TEAMS[call["player"] // 5] == own)
    return AgentGame(pair, side, 0.5 if drawn else float(winner == own), seconds, dict(answers)), player


def play_pairs(name: str, bot: str, pairs: range) -> Iterator[AgentGame]:
    """Play pairs of games of a kept agent, the agent as Radiant and as Dire."""
    agent = find_agent(name)
    with tempfile.TemporaryDirectory() as folder:
        fake = install_fake(Path(folder) / "steam")
        client = free_ports_options()
        for pair in pairs:
            for side in (0, 1):
                yield play_game(fake, client, agent, bot, pair, side)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent")
    parser.add_argument("bot")
    parser.add_argument("--first", type=int, default=0, help="the first pair's number")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    games: list[AgentGame] = []
    for game in play_pairs(options.agent, options.bot, range(options.first, options.first + options.pairs)):
        games.append(game)
        print(json.dumps(game._asdict()), flush=True)
        options.out.write_text(json.dumps({"agent": options.agent, "against": options.bot,
                                           "games": [g._asdict() for g in games]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
