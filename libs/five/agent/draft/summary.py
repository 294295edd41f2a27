"""Summary of a draft for people: the value of each pick, and the evidence behind it."""

from collections.abc import Sequence
from typing import Any

from five.agent.draft.advice import DraftAdvice
from five.agent.draft.evidence import DraftEvidence
from five.agent.draft.leaves import LeafTable
from five.agent.draft.pick_order import RADIANT


def summarize_draft(leaves: LeafTable, evidence: DraftEvidence, advice: DraftAdvice, radiant: Sequence[str] = (),
                    dire: Sequence[str] = (), banned: Sequence[str] = ()) -> dict[str, Any]:
    """Return the draft's state and choices as JSON values. ``advice`` must be that of the same picks and bans.

    ``win`` is the probability that Radiant wins, and a choice's ``own`` that of the team to move. ``played`` counts the
    teams of recorded training games with the hero, and ``rarest`` is its least-played pair with a picked hero. Both are
    None without recorded games. ``support`` is the least-played pair among the picked heroes.
    """
    moving = advice.to_move
    mine, theirs = (radiant, dire) if moving == RADIANT else (dire, radiant)
    choices = [{"hero": choice.hero, "win": choice.win, "own": choice.win if moving == RADIANT else 1.0 - choice.win,
                "played": evidence.teams_with(choice.hero) if evidence.games else None,
                "rarest": _rarest(evidence, [(choice.hero, other, True) for other in mine]
                                  + [(choice.hero, other, False) for other in theirs])}
               for choice in advice.choices]
    pairs = [(a, b, True) for team in (radiant, dire) for i, a in enumerate(team) for b in team[i + 1:]]
    pairs += [(a, b, False) for a in radiant for b in dire]
    return {
        "heroes": list(leaves.pool.heroes), "team": leaves.pool.team, "shared": leaves.pool.shared,
        "line_ups": leaves.pool.line_ups, "facts": leaves.facts, "order": advice.order, "to_move": moving,
        "radiant": list(radiant), "dire": list(dire), "banned": list(banned), "win": advice.win, "choices": choices,
        "games": evidence.games, "support": _rarest(evidence, pairs)}


def _rarest(evidence: DraftEvidence, pairs: Sequence[tuple[str, str, bool]]) -> dict[str, Any] | None:
    """Return the least-played pair of (hero, other, whether they are in one team)."""
    if not evidence.games or not pairs:
        return None
    counts = [evidence.games_together(a, b) if allied else evidence.games_against(a, b) for a, b, allied in pairs]
    games, (hero, other, allied) = min(zip(counts, pairs, strict=True), key=lambda count: count[0])
    return {"hero": hero, "other": other, "allied": allied, "games": games}
