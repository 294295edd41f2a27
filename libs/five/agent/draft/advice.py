"""Where a draft stands, and what each open pick would come to."""

from collections.abc import Sequence
from dataclasses import dataclass

from five.agent.draft.leaves import LeafTable, open_heroes
from five.agent.draft.pick_order import RADIANT, DraftError, parse_pick_order, remaining_picks
from five.agent.draft.solver import solve


@dataclass(frozen=True)
class PickAdvice:
    """A hero that may be picked now, and the probability that Radiant wins if he is and both pick their best after."""

    hero: str
    win: float


@dataclass(frozen=True)
class DraftAdvice:
    """``to_move`` "R", "D", or "" at the end; ``order`` the whole order, ``win`` the probability that Radiant wins if
    both teams pick their best from here; ``choices``, the best for who is to move first."""

    to_move: str
    order: str
    win: float
    choices: tuple[PickAdvice, ...]


def advise(leaves: LeafTable, radiant: Sequence[str] = (), dire: Sequence[str] = (), banned: Sequence[str] = (),
           order: str = "") -> DraftAdvice:
    """Solves the draft from where it stands. Bans make the pool smaller, for both teams, whoever banned: the tree below
    knows nothing of bans that are still to come. Raises DraftError for heroes that are not in the pool, named twice, or
    too many, for an order that does not come by there, and for bans that leave too few heroes."""
    pool = leaves.pool
    masks = [_mask(pool.heroes, names, what) for names, what in
             ((radiant, "Radiant's picks"), (dire, "Dire's picks"), (banned, "the bans"))]
    mine, theirs, out = masks
    if (mine | theirs) & out:
        raise DraftError(f"{_named(pool.heroes, (mine | theirs) & out)}: picked and banned")
    if not pool.shared and mine & theirs:
        raise DraftError(f"{_named(pool.heroes, mine & theirs)}: picked by both teams, and this pool is large enough "
                         "for each hero to be picked once")
    for names, team in ((radiant, "Radiant"), (dire, "Dire")):
        if len(names) > pool.team:
            raise DraftError(f"{team} has {len(names)} heroes: a team is {pool.team}")
    whole = parse_pick_order(order, pool.team)
    left = remaining_picks(whole, len(radiant), len(dire))
    for_radiant, for_dire = open_heroes(pool, mine, theirs, out)
    r, d = left.count(RADIANT), len(left) - left.count(RADIANT)
    short = len(for_radiant) < r or len(for_dire) < d if pool.shared else len(for_radiant) < r + d
    if short:
        raise DraftError(f"{len(banned)} bans leave too few heroes: {len(for_radiant)} are open and "
                         f"{len(left)} picks to come; take bans back")
    solved = solve(leaves.remaining(mine, theirs, out), len(for_radiant), len(for_dire), left, pool.shared)
    moving = left[:1]
    heroes = for_radiant if moving == RADIANT else for_dire
    choices = [PickAdvice(pool.heroes[hero], float(win)) for hero, win in zip(heroes, solved.choices, strict=False)]
    choices.sort(key=lambda choice: (-choice.win if moving == RADIANT else choice.win, choice.hero))
    return DraftAdvice(moving, whole, solved.value, tuple(choices))


def _mask(heroes: Sequence[str], names: Sequence[str], what: str) -> int:
    mask = 0
    for name in names:
        if name not in heroes:
            raise DraftError(f"{what}: there is no hero {name!r} in the pool; there are {', '.join(heroes)}")
        bit = 1 << heroes.index(name)
        if mask & bit:
            raise DraftError(f"{what}: {name} is named twice")
        mask |= bit
    return mask


def _named(heroes: Sequence[str], mask: int) -> str:
    return ", ".join(hero for place, hero in enumerate(heroes) if mask >> place & 1)
