"""Who picks when."""

RADIANT, DIRE = "R", "D"
# As the tool that OpenAI Five's games were drafted with shows it.
OPENAI_FIVE_ORDER = "DRRDRDRDDR"


class DraftError(ValueError):
    """A draft that cannot be: the message says what was wrong, and what would do."""


def default_order(team: int) -> str:
    """The order that is used when none is asked for: the published one for five a side, else one pick, then two each,
    Dire first."""
    if team == len(OPENAI_FIVE_ORDER) // 2:
        return OPENAI_FIVE_ORDER
    picks = [DIRE if (i + 1) // 2 % 2 == 0 else RADIANT for i in range(2 * team)]
    return "".join(picks)


def parse_pick_order(text: str, team: int) -> str:
    """An order from what a person writes ("D R R D", "drrd"; '' is the default). Raises DraftError."""
    order = "".join(text.upper().split()).replace(",", "") or default_order(team)
    if set(order) - {RADIANT, DIRE} or order.count(RADIANT) != team or order.count(DIRE) != team:
        raise DraftError(f"the order {text!r} does not fit teams of {team}: {team} times R and {team} times D are "
                         f"wanted, as in {default_order(team)}")
    return order


def remaining_picks(order: str, radiant: int, dire: int) -> str:
    """The picks that are left after so many of each team. Raises DraftError when the order does not come by there."""
    made, left = order[:radiant + dire], order[radiant + dire:]
    if made.count(RADIANT) != radiant:
        raise DraftError(f"after {radiant + dire} picks in the order {order} Radiant has {made.count(RADIANT)} "
                         f"heroes and Dire {made.count(DIRE)}, not {radiant} and {dire}: pick in that order, or give "
                         "another one")
    return left
