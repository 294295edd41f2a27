"""Pick order of a draft."""

RADIANT, DIRE = "R", "D"
# From the tool with which OpenAI Five's games were drafted.
OPENAI_FIVE_ORDER = "DRRDRDRDDR"


class DraftError(ValueError):
    """An invalid draft. The message names the value and what is allowed."""


def default_order(team: int) -> str:
    """Return the default pick order: the published one for five a side, else one pick, then two each, Dire first."""
    if team == len(OPENAI_FIVE_ORDER) // 2:
        return OPENAI_FIVE_ORDER
    picks = [DIRE if (i + 1) // 2 % 2 == 0 else RADIANT for i in range(2 * team)]
    return "".join(picks)


def parse_pick_order(text: str, team: int) -> str:
    """Return the order of a user's text ("D R R D", "drrd"; '' is the default). Raise DraftError."""
    order = "".join(text.upper().split()).replace(",", "") or default_order(team)
    if set(order) - {RADIANT, DIRE} or order.count(RADIANT) != team or order.count(DIRE) != team:
        raise DraftError(f"order {text!r}: {team} times R and {team} times D are required, as in "
                         f"{default_order(team)}")
    return order


def remaining_picks(order: str, radiant: int, dire: int) -> str:
    """Return the picks that follow the given number of each team. Raise DraftError if the order has another split
    there."""
    made, left = order[:radiant + dire], order[radiant + dire:]
    if made.count(RADIANT) != radiant:
        raise DraftError(f"after {radiant + dire} picks of order {order} Radiant has {made.count(RADIANT)} heroes "
                         f"and Dire {made.count(DIRE)}, not {radiant} and {dire}: follow the order or give another one")
    return left
