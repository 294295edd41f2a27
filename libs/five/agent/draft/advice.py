"""Values of the possible picks in a partial draft."""

from collections.abc import Sequence
from dataclasses import dataclass

from five.agent.draft.leaves import LeafTable, open_heroes
from five.agent.draft.pick_order import RADIANT, DraftError, parse_pick_order, remaining_picks
from five.agent.draft.solver import solve


@dataclass(frozen=True)
class PickAdvice:
    """A hero that may be picked now, and the probability that Radiant wins with optimal play after the pick."""

    hero: str
    win: float


@dataclass(frozen=True)
class DraftAdvice:
    """Advice on a partial draft.

    Attributes:
        to_move: "R", "D", or "" at the end.
        order: the whole pick order.
        win: probability that Radiant wins if both teams pick optimally from here.
        choices: possible picks, the best for the team to move first.
    """

    to_move: str
    order: str
    win: float
    choices: tuple[PickAdvice, ...]


def advise(leaves: LeafTable, radiant: Sequence[str] = (), dire: Sequence[str] = (), banned: Sequence[str] = (),
           order: str = "") -> DraftAdvice:
    """Solve a partial draft.

    Bans shrink the pool for both teams. The solver does not consider future bans. Raise DraftError for heroes outside
    the pool, duplicate or too many heroes, an order that does not match the picks, and bans that leave too few heroes.
    """
    pool = leaves.pool
    masks = [_mask(pool.heroes, names, what) for names, what in
             ((radiant, "Radiant's picks"), (dire, "Dire's picks"), (banned, "the bans"))]
    mine, theirs, out = masks
    if (mine | theirs) & out:
        raise DraftError(f"{_hero_names(pool.heroes, (mine | theirs) & out)}: both picked and banned; remove one")
    if not pool.shared and mine & theirs:
        raise DraftError(f"{_hero_names(pool.heroes, mine & theirs)}: picked by both teams; in a pool of this size "
                         "each hero can be picked once")
    for names, team in ((radiant, "Radiant"), (dire, "Dire")):
        if len(names) > pool.team:
            raise DraftError(f"{team} has {len(names)} heroes: at most {pool.team} are allowed")
    whole = parse_pick_order(order, pool.team)
    left = remaining_picks(whole, len(radiant), len(dire))
    for_radiant, for_dire = open_heroes(pool, mine, theirs, out)
    r, d = left.count(RADIANT), len(left) - left.count(RADIANT)
    too_few = len(for_radiant) < r or len(for_dire) < d if pool.shared else len(for_radiant) < r + d
    if too_few:
        raise DraftError(f"{len(banned)} bans leave too few heroes, {len(for_radiant)} for {len(left)} picks: remove "
                         "bans")
    solution = solve(leaves.remaining(mine, theirs, out), len(for_radiant), len(for_dire), left, pool.shared)
    moving = left[:1]
    heroes = for_radiant if moving == RADIANT else for_dire
    choices = [PickAdvice(pool.heroes[hero], float(win)) for hero, win in zip(heroes, solution.choices, strict=False)]
    choices.sort(key=lambda choice: (-choice.win if moving == RADIANT else choice.win, choice.hero))
    return DraftAdvice(moving, whole, solution.value, tuple(choices))


def _mask(heroes: Sequence[str], names: Sequence[str], what: str) -> int:
    mask = 0
    for name in names:
        if name not in heroes:
            raise DraftError(f"{what}: unknown hero {name!r}; the pool has {', '.join(heroes)}")
        bit = 1 << heroes.index(name)
        if mask & bit:
            raise DraftError(f"{what}: duplicate hero {name}")
        mask |= bit
    return mask


def _hero_names(heroes: Sequence[str], mask: int) -> str:
    return ", ".join(hero for i, hero in enumerate(heroes) if mask >> i & 1)
