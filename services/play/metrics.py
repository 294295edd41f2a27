"""Metrics of the play service."""

from rapid.telemetry.metrics import counter, gauge, histogram

GAMES = gauge("play", "open", "games", "Games that people play now.")
PEOPLE = gauge("play", "connected", "instances", "Connections of people, by what they do: playing, watching.",
               ("doing",))
ENDED = counter("play", "ended_games", "Games that ended, by how: played (to a winner or a draw), abandoned (by all "
                "its people), closed (by order), drained (with the service), lost (with inference).", ("how",))
FRAMES = counter("play", "frames", "Engine frames of games that people play.")
LATE_FRAMES = counter("play", "late_frames", "Engine frames that began more than a frame late.")
CLOCK_LAG = counter("play", "clock_lag_seconds", "Seconds by which games fell behind real time for good.")
LATE_ANSWERS = counter("play", "late_answers", "Timesteps of a game for which the agents' answer came too late: their "
                       "heroes kept the orders they had, or got those of an observation before.")
ANSWER_SECONDS = histogram("play", "answer", "seconds", "Time from a timestep's observation to the agents' answer.")
ORDERS = counter("play", "orders", "Orders of people, by outcome: done, or the word that they were refused with.",
                 ("outcome",))
SENT = counter("play", "sent_bytes", "Bytes of frames that were sent to people.")
SKIPPED = counter("play", "skipped_frames", "Frames that a client who had fallen behind was not sent.")
RECORDED = gauge("play", "recorded", "bytes", "Recordings of games that are over, kept to be watched again.")
RATED = counter("play", "rated_games", "Games by which people were rated, once for each person.")

for _doing in ("playing", "watching"):
    PEOPLE.labels(_doing)
for _how in ("played", "abandoned", "closed", "drained", "lost"):
    ENDED.labels(_how)
ORDERS.labels("done")
