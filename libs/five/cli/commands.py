"""Commands of `five`: parser and dispatch."""

import argparse
import os
from pathlib import Path

import redis

from five.cli import (
    agents,
    anneal,
    backup,
    bench,
    client,
    console,
    dotaservice,
    draft,
    numbers,
    play,
    repair,
    rest_commands,
    surgery,
    tokens,
)
from five.cli.interruption import default_action
from five.cli.run_selection import controller_of, require_agent_alone
from five.local.rest_client import ApiError
from five.local.run_folder import RunUnavailable, find_run
from five.packed_agents.errors import AgentUnavailable
from five.run.load import ConfigError, presets
from rapid.rpc.errors import CallFailed

# Errors that main prints as one line: messages for the user, and failures of files, connections and stores.
EXPECTED = (ConfigError, AgentUnavailable, RunUnavailable, ApiError, CallFailed, RuntimeError, OSError,
            redis.RedisError, UnicodeEncodeError)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    main = argparse.ArgumentParser(prog="five", description="Train team agents by large-scale self-play.")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train on this machine, with all services as local processes")
    train.add_argument("--preset", help=f"a preset ({', '.join(presets())}) or a YAML file; by default laptop-1v1")
    train.add_argument("--minutes", type=numbers.positive("; without --minutes training does not end"),
                       help="end after this time; by default run until Ctrl-C or `five stop`. A second Ctrl-C "
                       "kills what still runs")
    train.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                       help="change a value of the configuration, e.g. learning.batch_samples=64")
    train.add_argument("--seed", type=numbers.seed, help="same as --set seed=N")
    train.add_argument("--name", help="name of the run; by default the preset's with a number")
    train.add_argument("--resume", nargs="?", const="", metavar="NAME", help="resume a run; by default the last one")
    train.add_argument("--accept-changes", action="store_true", help="with --resume: change the run's configuration by "
                       "--set, --seed and --redis-url")
    train.add_argument("--from", dest="agent", metavar="AGENT", help="begin with the weights of a packed agent (name "
                       "or folder); the game and model are the agent's, the rest its run's or --preset's")
    train.add_argument("--temperature", type=numbers.temperature, metavar="T", help="with --from: begin at this "
                       "temperature of the agent, by default its own")
    train.add_argument("--redis-url", help="use this Redis for state and parameters instead of an embedded one")

    agents.add_arguments(commands.add_parser("agents", help="list packed agents, which need no run"))
    rest_commands.add_commands(commands)
    tokens.add_arguments(commands.add_parser("token", help="manage named tokens of the REST API"))

    anneal.add_arguments(commands)
    console.add_arguments(commands.add_parser("console", help="print a one-time link to the run's console"))
    play.add_arguments(commands.add_parser("play", help="print a one-time link to play with and against the agent"))
    dotaservice.add_arguments(commands.add_parser("dotaservice", help="serve games to clients of dotaservice"))
    client.add_arguments(commands.add_parser("client", help="play in a Dota 2 client, or check that policies can"))
    surgery.add_arguments(commands.add_parser("surgery", help="change the model or the game of a running agent"))

    evaluate = commands.add_parser("eval", help="play a version against a bot or another version")
    evaluate.add_argument("--run", help="name of the run; by default the last one")
    evaluate.add_argument("--agent", help=f"{agents.HELP}; it plays in this process, without a run")
    evaluate.add_argument("--version", type=numbers.version, default=-1, help="version to play; by default the newest")
    evaluate.add_argument("--against", default="scripted", help="opponent: random, scripted-easy, scripted, "
                          "scripted-hard, a version, or a packed agent, which plays in this process")
    evaluate.add_argument("--games", type=numbers.games, default=100, help="games to play, with sides swapped")
    evaluate.add_argument("--seed", type=numbers.seed, default=0, help="seed of the games")
    evaluate.add_argument("--json", action="store_true", help="print the result as JSON")

    choice = evaluate.add_mutually_exclusive_group()
    choice.add_argument("--greedy", action="store_true", help="take the most probable actions; plays in this process")
    choice.add_argument("--temperature", type=numbers.temperature, metavar="T", help="sample actions at this "
                        "temperature, in this process: below 1 probable actions are taken more often than in "
                        "training; by default 1, and a packed agent's own")
    evaluate.add_argument("--offline", action="store_true",
                          help="play in this process; a run that has ended is always played here")
    evaluate.add_argument("--deaths", action="store_true",
                          help="print who killed the heroes, and where and how; plays in this process")
    evaluate.add_argument("--casts", action="store_true",
                          help="print which abilities and items the heroes used; plays in this process")
    evaluate.add_argument("--replay", type=Path, metavar="FILE",
                          help="with --agent: record the first game in this file")

    playing = commands.add_parser("games", help="play the game's bots against each other and print statistics of "
                                  "their games")
    playing.add_argument("first", nargs="?", default="scripted-hard", help="one bot: random, scripted-easy, scripted "
                         "or scripted-hard")
    playing.add_argument("second", nargs="?", default="scripted-hard", help="the other bot")
    playing.add_argument("--games", type=numbers.integer(0), default=20, help="games to play")
    playing.add_argument("--seed", type=numbers.seed, default=0, help="seed of the games")
    playing.add_argument("--quick", action="store_true", help="play one against one in the middle lane: minutes a game")
    playing.add_argument("--threads", type=numbers.threads, default=0, help="threads; by default one a core")
    playing.add_argument("--log", type=Path, metavar="FILE", help="append each game to this file and print statistics "
                         "of all games in it; --games 0 plays none")
    playing.add_argument("--json", action="store_true", help="print the table as JSON")

    draft.add_arguments(commands.add_parser("draft", help="print the win probability of each pick of a draft"))

    ladder = commands.add_parser("ladder", help="print the ratings of a run's versions")
    ladder.add_argument("--run", help="name of the run; by default the last one")
    ladder.add_argument("--games", type=numbers.integer(0), default=0,
                        help="play, in this process, what each version lacks for a rating of N games", metavar="N")
    ladder.add_argument("--versions", type=int, nargs="+", metavar="N", help="rate only these versions")
    ladder.add_argument("--json", action="store_true", help="print the standings as JSON")

    ablation = commands.add_parser("ablate", help="train several variants with several seeds and compare them")
    ablation.add_argument("file", help="the ablation's YAML file (docs/ablations.md)")
    ablation.add_argument("--report", action="store_true", help="only write table and page of the finished runs")

    sweeping = commands.add_parser("sweep", help="search for the best values of a preset's keys, and confirm them")
    sweeping.add_argument("file", help="the sweep's YAML file (benchmarks/sweeps has an example)")
    sweeping.add_argument("--report", action="store_true", help="only write table and page of the finished runs")
    sweeping.add_argument("--yaml", action="store_true", help="only print the winner's overrides as options --set "
                          "KEY=VALUE of five train, values in YAML")

    watch = commands.add_parser("watch", help="render a replay to a GIF or MP4")
    watch.add_argument("replay", nargs="?", help="replay file; by default the newest of a run")
    watch.add_argument("--run", help="run whose newest replay is rendered; by default the last run")
    watch.add_argument("--agent", help="render the replay of this packed agent (name or folder)")
    watch.add_argument("--out", help="output file (.gif or .mp4); by default the replay's name with .mp4")
    watch.add_argument("--speed", type=numbers.positive(), default=8.0, help="game seconds a second of film")
    watch.add_argument("--seconds", type=numbers.positive(), help="longest length of the film")

    bench.add_arguments(commands.add_parser("bench", help="run benchmarks"))

    for name, words in (("backup", "write a run's state to a file"), ("restore", "restore a run from a backup")):
        backup.add_arguments(commands.add_parser(name, help=words), restoring=name == "restore")

    repair.add_arguments(commands.add_parser("repair", help="repair the damaged state of a run of this machine"))

    scaling = commands.add_parser("scale", help="print the capacity of four cluster sizes")
    scaling.add_argument("--markdown", action="store_true", help="print the tables of docs/scale.md")
    scaling.add_argument("--json", action="store_true", help="print the tables as JSON")
    scaling.add_argument("--into", metavar="PAGE", help="write the tables into a page, between its markers")

    rotating = commands.add_parser("rotate", help="rotate Redis passwords or the secrets of calls between services, "
                                   "of a running run of this machine")
    rotating.add_argument("users", nargs="+", metavar="USER", help="a component, admin or probe; token: the secrets "
                          "of all callers; token:CALLER: the secret of one")
    rotating.add_argument("--run", help="name of the run; by default the last one")

    reporting = commands.add_parser("report", help="write the report of a run")
    reporting.add_argument("--run", help="name of the run; by default the last one")
    reporting.add_argument("--data", type=Path, metavar="FILE", help="render this JSON file of a report beside it, as "
                           "benchmarks/learning/*.json")
    return main


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Modules are imported by the command that needs them."""
    match arguments.command:
        case "train":
            with default_action():
                from five.cli.train import train  # two seconds

            if arguments.accept_changes and arguments.resume is None:
                raise ConfigError("--accept-changes: only with --resume")
            overrides = list(arguments.overrides)
            if arguments.seed is not None:
                overrides.append(f"seed={arguments.seed}")
            if arguments.redis_url:
                overrides += [f"store.state_url={arguments.redis_url}", f"store.params_url={arguments.redis_url}"]
            return train(arguments.preset, arguments.minutes, overrides, arguments.name, arguments.resume,
                         arguments.accept_changes, arguments.agent, arguments.temperature)
        case "agents":
            return agents.run(arguments)
        case "config" if arguments.key is not None:
            from five.cli.configuration import config

            return config(arguments.key, arguments.json)
        case name if name in rest_commands.NAMES:
            return rest_commands.run(arguments)
        case "token":
            return tokens.run(arguments)
        case "console":
            return console.run(arguments)
        case "play":
            return play.run(arguments)
        case "dotaservice":
            return dotaservice.run(arguments)
        case "client":
            return client.run(arguments)
        case "surgery" if arguments.verb == "rehearse" and not (arguments.ask or arguments.url):
            surgery.require_rehearsal_here(arguments)
            from five.rehearsal.rehearsal import rehearse

            return rehearse(find_run(arguments.run), arguments.plan, surgery.scope_of(arguments))
        case "anneal" | "revert":
            return anneal.run(arguments, controller_of(arguments))
        case "surgery":
            return surgery.run(arguments, controller_of(arguments))
        case "backup" | "restore":
            return backup.run(arguments, arguments.command == "restore")
        case "repair":
            return repair.run(arguments)
        case "eval":
            from five.cli.evaluate import Details, evaluate, evaluate_agent

            require_agent_alone(arguments)
            details = Details(arguments.deaths, arguments.casts)
            if arguments.agent:
                return evaluate_agent(arguments.agent, arguments.against, arguments.games, arguments.seed,
                                      arguments.json, arguments.greedy, arguments.replay, details,
                                      arguments.temperature)
            if arguments.replay is not None:
                raise ConfigError(f"--replay {arguments.replay}: only with --agent; a run keeps its replays in its "
                                  "folder")
            return evaluate(find_run(arguments.run), arguments.version, arguments.against, arguments.games,
                            arguments.seed, arguments.json, arguments.greedy, arguments.offline, details,
                            arguments.temperature)
        case "games":
            from five.cli.games import games

            return games(arguments.first, arguments.second, arguments.games, arguments.seed, arguments.quick,
                         arguments.threads or os.cpu_count() or 1, arguments.json, arguments.log)
        case "draft":
            return draft.run(arguments)
        case "ladder":
            from five.cli.ladder import ladder

            return ladder(find_run(arguments.run), arguments.games, arguments.versions, arguments.json)
        case "ablate":
            from five.cli.ablate import ablate

            return ablate(Path(arguments.file), arguments.report)
        case "sweep":
            from five.cli.sweep import sweep

            return sweep(Path(arguments.file), arguments.report, arguments.yaml)
        case "watch":
            from five.cli.watch import newest, watch, watch_agent

            require_agent_alone(arguments)
            if arguments.replay and (arguments.agent or arguments.run):
                raise ConfigError(f"{arguments.replay}: give a file, --run or --agent, one of the three")
            if arguments.agent:
                return watch_agent(arguments.agent, arguments.out, arguments.speed, arguments.seconds)
            replay = arguments.replay or str(newest(find_run(arguments.run).path / "replays"))
            return watch(replay, arguments.out, arguments.speed, arguments.seconds)
        case "scale":
            from five.cli.scale import scale

            return scale(arguments.markdown, arguments.json, arguments.into)
        case "rotate":
            from five.local.rotation import callers_of, request_rotation, rotate_secrets

            folder, named = find_run(arguments.run), {user: callers_of(user) for user in arguments.users}
            users = [user for user, callers in named.items() if callers is None]
            if users:
                request_rotation(folder, users)
                print(f"passwords changed: {', '.join(users)}; the old ones are now refused")
            if callers := sorted({caller for found in named.values() for caller in found or ()}):
                rotate_secrets(folder, callers)
                print(f"secrets changed: {', '.join(callers)}; the old ones are now refused")
            return 0
        case "report":
            from five.cli.evaluate import render_report, write_report

            return render_report(arguments.data) if arguments.data else write_report(find_run(arguments.run))
        case _:
            return bench.bench(arguments.what, arguments.json, arguments.preset, arguments.overrides)
