"""Metrics of the play service."""

from rapid.telemetry.metrics import counter, gauge, histogram

GAMES = gauge("play", "open", "games", "Games that people play now.")
PEOPLE = gauge("play", "connected", "instances", "Connections of people, by activity: playing, watching.", ("doing",))
ENDED = counter("play", "ended_games", "Ended games, by cause: played (to a winner or a draw), abandoned (all people "
                "left), closed (on request), drained (the service ended), lost (inference was lost).", ("how",))
FRAMES = counter("play", "frames", "Engine frames of games that people play.")
LATE_FRAMES = counter("play", "late_frames", "Engine frames that began more than a frame late.")
CLOCK_LAG = counter("play", "clock_lag_seconds", "Seconds by which games fell behind real time permanently.")
LATE_ANSWERS = counter("play", "late_answers", "Timesteps for which the agents' answer was late: their heroes kept "
                       "their orders, or received those for an earlier observation.")
ANSWER_SECONDS = histogram("play", "answer", "seconds", "Time from a timestep's observation to the agents' answer.")
ORDERS = counter("play", "orders", "Orders of people, by outcome: done, or the reason of the refusal.", ("outcome",))
SENT = counter("play", "sent_bytes", "Bytes of frames sent to people.")
SKIPPED = counter("play", "skipped_frames", "Frames that were not sent because the client had fallen behind.")
RECORDED = gauge("play", "recorded", "bytes", "Size of the stored recordings of ended games.")
RATED = counter("play", "rated_games", "Rated games of people, counted once per person.")

for _doing in ("playing", "watching"):
    PEOPLE.labels(_doing)
for _how in ("played", "abandoned", "closed", "drained", "lost"):
    ENDED.labels(_how)
ORDERS.labels("done")
