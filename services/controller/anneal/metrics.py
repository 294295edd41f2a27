"""Metrics of the anneal."""

from collections.abc import Callable

from five.agent.anneal.document import Anneal, AnnealState
from rapid.telemetry.metrics import gauge

SHARE = gauge("controller", "anneal", "ratio", "Share of games that begin with the annealed change; 0 while "
              "none is.")
STATE = gauge("controller", "anneal", "state", "1 for the state that the anneal is in: ramping, holding, promoted, "
              "aborted, failed, reverted. 0 for all before the first.", ("state",))
ATTEMPT = gauge("controller", "anneal_attempt", "info", "Which try of the anneal it is, from 1; 0 before the first.")


def show_anneal(anneal: Anneal | None, head: Callable[[], int | None]) -> None:
    """Set the gauges to the anneal's current state."""
    if anneal is not None:
        SHARE.set(anneal.share(head() or 0))
        ATTEMPT.set(anneal.attempt)
    for state in AnnealState:
        STATE.labels(state).set(anneal is not None and anneal.state is state)
