"""A trained agent plays a whole game of the fake client: world states in, orders out."""

import json
from collections import Counter

from dota.config import evaluation_game
from five.packed_agents.folder import find_agent
from five.real_client.client_process import ClientOptions
from five.real_client.installation import find_installation
from five.real_client.policy_player import PolicyPlayer
from five.real_client.session import Session, SessionOptions, play
from tests.real_client.fake_faults import FakeInstallation, FakeSettings
from tests.real_client.test_session import HEROES

SHADOW_FIEND = ("npc_dota_hero_nevermore",)


def play_agent(fake: FakeInstallation, client: ClientOptions, name: str, seed: int, bot: str = "scripted-easy",
               **faults: object) -> tuple[int, PolicyPlayer, Counter[str]]:
    """Play a game as Radiant; return the winner, the player and how its orders ended."""
    agent = find_agent(name)
    game = evaluation_game(agent.config.game)
    heroes = SHADOW_FIEND * 5 if game.heroes_per_team == 1 else HEROES
    fake.write(FakeSettings.model_validate({"game": game.model_dump_json(), "bot": bot, "seed": seed, **faults}))
    options = SessionOptions({2: "agent", 3: "builtin"}, {2: heroes, 3: heroes},
                             ClientOptions(ticks=game.frameskip, ports=client.ports), scripted=True)
    player = PolicyPlayer(agent.policy(), game, seed)
    with Session(find_installation(fake.game, "linux"), options) as session:
        winner = play(session, {2: player})
    calls = [json.loads(line) for line in fake.calls.read_text().splitlines()]
    return winner, player, Counter(call["refused"] for call in calls)


def test_an_agent_plays_a_game_to_its_end(fake: FakeInstallation, client_options: ClientOptions) -> None:
    winner, player, ends = play_agent(fake, client_options, "first-mid", 3)
    assert winner in (2, 3) and player.damaged == 0 and player.game.counts["refused"] == 0
    assert player.game.time > 60 and sum(ends.values()) > 100
    assert ends[""] > 0.9 * sum(ends.values()), ends


def test_damaged_frames_do_not_reach_the_policy(fake: FakeInstallation, client_options: ClientOptions) -> None:
    _, player, ends = play_agent(fake, client_options, "first-mid", 4, cut=[10, 40, 41], seconds=20)
    assert player.damaged == 3 and ends[""] > 0
