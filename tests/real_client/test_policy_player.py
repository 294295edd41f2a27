"""A trained agent plays whole games of the fake client: world states in, orders out."""

import pytest

from five.agent.ratings import wilson_interval
from five.packed_agents.folder import find_agent
from five.real_client.client_process import ClientOptions
from tests.real_client.agent_games import play_game, play_pairs
from tests.real_client.fake_faults import FakeInstallation


@pytest.mark.runs
def test_an_agent_plays_a_game_to_its_end(fake: FakeInstallation, client_options: ClientOptions) -> None:
    game, player = play_game(fake, client_options, find_agent("first-mid"), "scripted-easy", 3, 0)
    assert player.damaged == 0 and player.game.counts["refused"] == 0
    assert game.seconds > 60 and sum(game.answers.values()) > 100
    assert game.answers[""] > 0.9 * sum(game.answers.values()), game.answers


def test_damaged_frames_do_not_reach_the_policy(fake: FakeInstallation, client_options: ClientOptions) -> None:
    game, player = play_game(fake, client_options, find_agent("first-mid"), "scripted-easy", 4, 1, cut=[10, 40, 41],
                             seconds=20)
    assert player.damaged == 3 and game.answers[""] > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "bot", "pairs"), [("first-mid", "scripted", 25), ("first-five", "scripted-easy", 5)])
def test_an_agent_scores_as_in_the_simulator(name: str, bot: str, pairs: int) -> None:
    """The interval of its score through the adapter (95 %, drawn games count half) meets the one of its card."""
    scores = [game.score for game in play_pairs(name, bot, range(pairs))]
    low, high = wilson_interval(sum(scores), len(scores))
    card = next(score for score in find_agent(name).card.scores if score.against == bot)
    assert low <= card.high and high >= card.low, (scores, card)
