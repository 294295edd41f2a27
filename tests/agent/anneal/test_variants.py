import numpy as np
import pytest

from five.agent.anneal.variants import Variant, assign_variant, hash_fraction

IDS = [f"{i:032x}" for i in range(20_000)]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_share_of_games_with_the_change(share: float) -> None:
    found = np.mean([assign_variant("patch", game, share) is Variant.NEW for game in IDS])
    # Four standard deviations of 20,000 games; exact at 0 and 1.
    assert abs(found - share) <= 4 * (share * (1 - share) / len(IDS)) ** 0.5


def test_variant_is_monotone_in_the_share() -> None:
    before: set[str] = set()
    for share in np.linspace(0, 1, 41):
        now = {game for game in IDS[:2000] if assign_variant("patch", game, float(share)) is Variant.NEW}
        assert before <= now
        before = now
    assert len(before) == 2000


def test_anneals_assign_independently_and_reproducibly() -> None:
    a, b = (np.array([hash_fraction(name, game) for game in IDS]) for name in ("one/1", "one/2"))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert a.min() >= 0 and a.max() < 1
    # A fixed value, because rollouts of different releases must agree.
    assert hash_fraction("one/1", "00") == pytest.approx(0.4701482319632819, abs=1e-15)
