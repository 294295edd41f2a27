"""People's ratings: once for each game, separate from versions, unchanged by abandoned games."""

import redis

from five.agent.config import RatingConfig
from five.services.play.ratings import TABLE, FinishedGame, Person, RatedPeople
from rapid.store.state import RunState

CONFIG = RatingConfig()


def people(client: redis.Redis) -> RatedPeople:
    return RatedPeople(RunState(client, "trial"), CONFIG)


def stored(client: redis.Redis) -> dict[str, Person]:
    """Return the people of the table by name."""
    return {name: Person(**row) for name, row in RunState(client, "trial").table(TABLE).all().items()}


def played(game: str, winner: int, *sides: dict[str, int], away: tuple[str, ...] = (), heroes: int = 5) -> FinishedGame:
    return FinishedGame(game, winner, sides, away, ("version-3", "version-3"), heroes)


def test_repeated_report_rates_a_game_once(redis_client: redis.Redis) -> None:
    table = people(redis_client)
    game = played("g1", 1, {"ada": 1}, {})
    moved = table.rate(game)
    assert moved["ada"].mu > 25 and moved["ada"].sigma < CONFIG.sigma and moved["ada"].won == 1
    assert table.rate(game) == {}
    assert stored(redis_client) == moved


def test_rating_change_grows_with_held_heroes(redis_client: redis.Redis) -> None:
    table = people(redis_client)
    one = table.rate(played("g1", 1, {"ada": 1}, {}))["ada"].mu
    five = table.rate(played("g2", 1, {"bob": 5}, {}))["bob"].mu
    assert 25 < one < five


def test_winner_rises_and_loser_falls(redis_client: redis.Redis) -> None:
    moved = people(redis_client).rate(played("g1", 2, {"ada": 1}, {"bob": 1}, heroes=1))
    assert moved["bob"].mu > 25 > moved["ada"].mu and moved["ada"].lost == moved["bob"].won == 1


def test_rating_uses_the_opponents_ladder_rating(redis_client: redis.Redis) -> None:
    redis_client.hset("five:trial:table:ratings", "rated:version-3", '{"mu": 60.0, "sigma": 1.0}')
    against_strong = people(redis_client).rate(played("g1", 1, {"ada": 1}, {}, heroes=1))["ada"].mu
    redis_client.hset("five:trial:table:ratings", "rated:version-3", '{"mu": 5.0, "sigma": 1.0}')
    against_weak = people(redis_client).rate(played("g2", 1, {"bob": 1}, {}, heroes=1))["bob"].mu
    assert against_strong > against_weak + 5
    row = redis_client.hget("five:trial:table:ratings", "rated:version-3")
    assert row == b'{"mu": 5.0, "sigma": 1.0}'  # the version's own rating stays


def test_abandoned_games_do_not_change_ratings(redis_client: redis.Redis) -> None:
    table = people(redis_client)
    assert table.rate(played("g1", 0, {"ada": 1}, {})) == {}
    moved = table.rate(played("g2", 1, {}, {"bob": 1}, away=("ada",)))
    assert set(moved) == {"bob"}
    ada, bob = (stored(redis_client)[name] for name in ("ada", "bob"))
    assert (ada.abandoned, ada.won, ada.lost, ada.mu) == (2, 0, 0, 25.0)
    assert (bob.lost, bob.abandoned) == (1, 0)


def test_drawn_game_counts_as_drawn(redis_client: redis.Redis) -> None:
    moved = people(redis_client).rate(played("g1", 3, {"ada": 1}, {"bob": 1}, heroes=1))
    assert moved["ada"].drawn == 1 and abs(moved["ada"].mu - moved["bob"].mu) < 1e-6
