"""Game: games played for training, their results and speed."""

from tools.dashboards.frame import Dashboard, Row
from tools.dashboards.panels import Query, chart, heat, number
from tools.dashboards.queries import LONG, buckets, increase, mean, quantile, rate, series, total

GAMES = total(increase("five_rollout_games_total"))


def statistic(name: str) -> str:
    """Return the mean of a hero's statistic over the games of the last hour."""
    return f"{total(increase('five_rollout_hero_statistics_total', statistic=name))} / {GAMES}"


BOARD = Dashboard("game", "Five / Game", "Games played for training: results, length, heroes; their servers.", [
    Row("Games", [
        number("Games", "Ended in the last hour.", Query(GAMES)),
        number("Mean length", "In game time, of the games of the last hour.",
               Query(mean("five_rollout_game_seconds", window=LONG)), "s"),
        number("Last hits", "Of a hero in a game, mean of the last hour.", Query(statistic("last_hits")), decimals=1),
        number("Net worth", "Of a hero at the end of a game, mean of the last hour.", Query(statistic("net_worth")),
               decimals=0),
        number("Radiant wins", "Share of decided games of the last hour. Far from one half: the sides are not alike.",
               Query(f"{total(increase('five_rollout_decided_games_total', winner='radiant'))} / "
                     f"{total(increase('five_rollout_decided_games_total', winner='~radiant|dire'))}"), "percentunit"),
        number("Draws", "Share of the games of the last hour that nobody won before the time limit.",
               Query(f"{total(increase('five_rollout_decided_games_total', winner='draw'))} / "
                     f"{total(increase('five_rollout_decided_games_total'))}"), "percentunit"),
        chart("Results", "Games of the last hour, by opponent and outcome for the side that learns.",
              Query(total(increase("five_rollout_games_total"), "opponent", "outcome"), "{{opponent}}: {{outcome}}"),
              least=0, stacked=True),
        chart("Results from the middle", "Games of the last hour that began in the middle, by opponent and outcome. No "
              "other chart counts them.", Query(total(increase("five_rollout_middle_games_total"), "opponent",
                                                      "outcome"), "{{opponent}}: {{outcome}}"), least=0, stacked=True),
        chart("Winners", "Games of the last hour, by winner.",
              Query(total(increase("five_rollout_decided_games_total"), "winner"), "{{winner}}"), least=0,
              stacked=True),
        chart("Game length", "In game time. An agent that has learned to end games makes them shorter.",
              Query(mean("five_rollout_game_seconds", window=LONG), "mean"),
              *(Query(quantile(q, "five_rollout_game_seconds", window=LONG), f"{q:.0%}") for q in (0.05, 0.5, 0.95)),
              unit="s", least=0),
        heat("Length distribution", "Games that ended, by length.", Query(buckets("five_rollout_game_seconds", LONG)),
             "s")]),
    Row("Heroes that learn, means of a game", [
        chart("Last hits and denies", "The first that an agent learns.", Query(statistic("last_hits"), "last hits"),
              Query(statistic("denies"), "denies"), least=0),
        chart("Kills, deaths, assists", "Kills without deaths would be a bug: in self-play they are about equal.",
              *(Query(statistic(name), name) for name in ("kills", "deaths", "assists")), least=0),
        chart("Net worth and experience", "At the end of a game.", Query(statistic("net_worth"), "net worth"),
              Query(statistic("xp"), "experience"), least=0),
        chart("Level", "At the end of a game.", Query(statistic("level"), "level"), least=0),
        chart("Hero damage", "Dealt to heroes in a game.", Query(statistic("hero_damage"), "damage"), least=0)]),
    Row("Speed", [
        chart("Time that a game takes", "Of the wall clock.",
              Query(mean("five_rollout_game_wall_seconds", window=LONG), "mean"),
              Query(quantile(0.95, "five_rollout_game_wall_seconds", window=LONG), "95%"), unit="s", least=0),
        chart("Team-steps of rollouts", "Played by a version, a second, by process.",
              Query(total(rate("five_rollout_team_steps_total"), "instance"), "{{instance}}"), unit="cps", least=0),
        chart("Environment servers: steps", "Timesteps of games a second, where games run in servers of their own.",
              Query(total(rate("five_env_game_steps_total")), "game steps"),
              Query(total(rate("five_env_hero_steps_total")), "hero-steps"), unit="cps", least=0),
        chart("Environment servers: time of a step", "Of one request's games in the core.",
              *(Query(quantile(q, "five_env_step_seconds"), f"{q:.0%}") for q in (0.5, 0.95, 0.99)), unit="s", least=0),
        chart("Environment servers: open games", "Games being played, by server.",
              Query(total(series("five_env_open_games"), "instance"), "{{instance}}"), least=0, stacked=True)]),
    Row("Games that people play", [
        chart("People", "Players and spectators connected to games, and open games.",
              Query(total(series("five_play_connected_instances"), "doing"), "{{doing}}"),
              Query(total(series("five_play_open_games")), "games"),
              Query(total(series("five_controller_play_sockets_instances")), "browsers"), least=0),
        chart("Agents' answers", "From a timestep's observation to what the agents chose; one that takes longer than "
              "a tenth of a second is late.",
              *(Query(quantile(q, "five_play_answer_seconds"), f"{q:.0%}") for q in (0.5, 0.99)), unit="s", least=0),
        chart("Late", "A second: timesteps without the agents' answer, frames that began late, frames that a slow "
              "client was not sent.", Query(total(rate("five_play_late_answers_total")), "answers"),
              Query(total(rate("five_play_late_frames_total")), "frames"),
              Query(total(rate("five_play_skipped_frames_total")), "skipped"), unit="cps", least=0),
        chart("Pace", "Engine frames a second, 30 for each game; and seconds a second by which games fell behind real "
              "time for good.", Query(total(rate("five_play_frames_total")), "frames"),
              Query(total(rate("five_play_clock_lag_seconds_total")), "clock lag"), least=0),
        chart("Orders", "Of people, a second, by outcome.", Query(total(rate("five_play_orders_total"), "outcome"),
                                                                  "{{outcome}}"), unit="cps", least=0, stacked=True),
        chart("Games that ended", "In the last hour, by how; what was abandoned rates nobody.",
              Query(total(increase("five_play_ended_games_total"), "how"), "{{how}}"),
              Query(total(increase("five_play_rated_games_total")), "ratings"), least=0, stacked=True),
        chart("Bytes", "Sent to people, a second; what the controller passed on of it.",
              Query(total(rate("five_play_sent_bytes_total")), "sent"),
              Query(total(rate("five_controller_play_forwarded_bytes_total")), "passed on"), unit="Bps", least=0)]),
    Row("Games of dotaservice's clients", [
        chart("Observations", "Sent to clients, a second, and the engine frames between them.",
              Query(total(rate("five_dotaservice_observations_total")), "observations"),
              Query(total(rate("five_dotaservice_frames_total")), "frames"), unit="cps", least=0),
        chart("Time of a step", "Simulation of the frames between two observations.",
              *(Query(quantile(q, "five_dotaservice_step_seconds"), f"{q:.0%}") for q in (0.5, 0.99)), unit="s",
              least=0),
        chart("Actions", "Of clients, a second: done, or the reason why the game ignored one. waits: observations "
              "for which one side waited in vain for the other.",
              Query(total(rate("five_dotaservice_actions_total"), "outcome"), "{{outcome}}"),
              Query(total(rate("five_dotaservice_expired_waits_total")), "waits"), unit="cps", least=0, stacked=True),
        chart("Games of clients", "Open now; in the last hour started, by mode, and ended, by cause.",
              Query(total(series("five_dotaservice_open_games")), "open"),
              Query(total(increase("five_dotaservice_started_games_total"), "mode"), "{{mode}}"),
              Query(total(increase("five_dotaservice_ended_games_total"), "how"), "{{how}}"), least=0),
        chart("World states", "Bytes a second.", Query(total(rate("five_dotaservice_state_bytes_total")), "sent"),
              unit="Bps", least=0)]),
])
