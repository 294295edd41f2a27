"""What the evaluator shows on its metrics page."""

from rapid.telemetry.metrics import counter, gauge

RATING = gauge("evaluator", "trueskill", "rating", "Mean of the newest finished rating; random play is 0.")
SIGMA = gauge("evaluator", "trueskill_sigma", "rating", "Uncertainty of the newest finished rating.")
GAMES = counter("evaluator", "played_games", "Games played, by opponent.", ("opponent",))
WIN_RATE = gauge("evaluator", "win", "ratio", "Share of the last games won against a bot.", ("opponent",))
