"""Metrics of the server of dotaservice's protocol."""

from dota.play import REFUSALS
from rapid.telemetry.metrics import counter, gauge, histogram

# Reasons for ignoring an action, beyond the game's own REFUSALS.
UNSUPPORTED = "unsupported"  # no order of the game corresponds to it
INCOMPLETE = "incomplete"  # its fields are missing, or belong to another action
NOT_CONTROLLED = "not_controlled"  # its player is not a controlled hero of that side
STALE = "stale"  # it is for another observation than the newest one
LATE = "late"  # its delay reaches beyond the observation
NAME = "name"  # the hero has no such ability or talent
OUTCOMES = ("done", UNSUPPORTED, INCOMPLETE, NOT_CONTROLLED, STALE, LATE, NAME, *REFUSALS)

GAMES = gauge("dotaservice", "open", "games", "Games in progress.")
STARTED = counter("dotaservice", "started_games", "Games that clients started, by mode.", ("mode",))
ENDED = counter("dotaservice", "ended_games", "Ended games, by cause: radiant or dire (won), draw (the time limit), "
                "reset (replaced by a client).", ("how",))
FRAMES = counter("dotaservice", "frames", "Engine frames of games of the clients.")
OBSERVATIONS = counter("dotaservice", "observations", "Observations sent to clients.")
STATE_BYTES = counter("dotaservice", "state_bytes", "Bytes of the world states in observations.")
STEP_SECONDS = histogram("dotaservice", "step", "seconds", "Time to simulate the frames between two observations.")
ACTIONS = counter("dotaservice", "actions", "Actions of clients, by outcome: done, or the reason why an action was "
                  "ignored.", ("outcome",))
WAITS = counter("dotaservice", "expired_waits", "Observations for which one side waited in vain for the actions of the "
                "other.")

for _mode in ("1v1_mid", "5v5"):
    STARTED.labels(_mode)
for _how in ("radiant", "dire", "draw", "reset"):
    ENDED.labels(_how)
for _outcome in OUTCOMES:
    ACTIONS.labels(_outcome)
