"""`five agents`: list packed agents, pack a version of a run, and renew what a change of the game has made stale."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from five.cli import numbers
from five.cli.columns import align
from five.local.run_folder import find_run

if TYPE_CHECKING:  # it needs torch
    from five.packed_agents.card import AgentCard

HELP = "packed agent to use, by name or folder; `five agents` lists them"
MOST_GAMES = 5000  # against each bot; a packed agent's file of games holds those against all bots


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `five agents`."""
    parser.add_argument("--json", action="store_true", help="print the cards as JSON")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    pack = verbs.add_parser("pack", help="pack a version of a run of this machine as a folder that needs no run")
    pack.add_argument("run", metavar="RUN", help="name of the run")
    pack.add_argument("--name", required=True, help="name of the agent: lowercase letters, digits and dashes")
    pack.add_argument("--version", type=numbers.version, default=-1, help="archived version; by default the newest")
    pack.add_argument("--weakness", action="append", required=True, metavar="TEXT",
                      help="known weakness, for the card; may be repeated")
    _add_evaluation(pack, "By default those that have been played", 0, "")
    pack.add_argument("--temperature", type=numbers.temperature, default=1.0, metavar="T",
                      help="temperature at which the agent plays, here and from then on; training is at 1, and lower "
                      "ones prefer probable actions")
    pack.add_argument("--into", type=Path, metavar="FOLDER", help="parent folder; by default agents/")
    pack.add_argument("--summary", default="", help="sentence for the card; by default made of the other facts")
    pack.add_argument("--license", default="", help="license of the weights; by default Apache-2.0")
    pack.add_argument("--cost", default="", help="cost of the training; by default core-hours or GPU-hours")
    for option, kind, words in (("--trained-by", str, "command that trained it"),
                                ("--commit", str, "commit of the source"),
                                ("--hero-steps", int, "hero-steps of the training"),
                                ("--hours", float, "hours of the training"),
                                ("--hardware", str, "machine of the training")):
        pack.add_argument(option, type=kind, help=f"{words}; by default from the run's folder")
    renew = verbs.add_parser("renew", help="record an agent's replay and check game again after a change of the game")
    renew.add_argument("name", metavar="NAME", help=HELP)
    renew.add_argument("--weakness", action="append", default=[], metavar="TEXT",
                       help="known weakness that replaces those of the card; may be repeated")
    renew.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                       help="setting of the game that the agent plays with from then on, such as game.frameskip=8; the "
                       "card names it beside that of the training; needs --games; may be repeated")
    _add_evaluation(renew, "By default the scores stay as they are", None, "; by default that of the present games")


def _add_evaluation(parser: argparse.ArgumentParser, otherwise: str, seed: int | None, by_default: str) -> None:
    parser.add_argument("--games", type=numbers.integer(1, MOST_GAMES), default=0, help="evaluation games against each "
                        f"bot; continues an interrupted evaluation. {otherwise}")
    parser.add_argument("--seed", type=numbers.seed, default=seed, help=f"seed of the evaluation games{by_default}")
    parser.add_argument("--processes", type=numbers.integer(1, 1024), default=1, help="processes that play the games")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Return the exit status. Raises AgentUnavailable, RunUnavailable."""
    match arguments.verb:
        case "pack":
            return _pack(arguments)
        case "renew":
            return _renew(arguments)
        case _:
            return _list(arguments.json)


def _list(as_json: bool) -> int:
    """Print the packed agents; a damaged one as a warning, with exit status 1."""
    from five.packed_agents.errors import AgentUnavailable
    from five.packed_agents.folder import packed_agents

    cards, status = [], 0
    for agent in packed_agents().values():
        try:
            cards.append(agent.card)
        except AgentUnavailable as error:
            status = 1
            print(f"five agents: {error}", file=sys.stderr)
    if as_json:
        print(json.dumps([card.model_dump(mode="json") for card in cards], indent=1, ensure_ascii=False))
        return status
    if cards:
        print(table(cards))
    elif not status:
        print("no packed agents here; `five agents pack` makes one of a run")
    return status


def table(cards: "Sequence[AgentCard]") -> str:
    """Return the agents with their scores as a table, which fits 80 columns unless names are long."""
    from dota.rule_changes import REVISION

    bots = dict.fromkeys(score.against for card in cards for score in card.scores)
    rows = [["agent", "mode", *bots]]
    for card in cards:
        scores = {s.against: f"{100 * s.score:.0f} ({100 * s.low:.0f}-{100 * s.high:.0f})" for s in card.scores}
        rows.append([f"{card.name}{'' if card.rules == REVISION else ' *'}", card.mode,
                     *(scores.get(bot, "-") for bot in bots)])
    lines = [align(rows), "scores in % against bots with 95 % intervals; a drawn game is half a win"]
    if any(card.rules != REVISION for card in cards):
        lines.append("* the rules have changed since: `five eval --agent NAME` prints what")
    return "\n".join(lines)


def _pack(arguments: argparse.Namespace) -> int:
    from five.evaluation.archived_versions import ArchivedVersions
    from five.packed_agents.card import TrainingFacts
    from five.packed_agents.folder import agent_folders
    from five.packed_agents.packing import LICENSE, EvaluationRequest, PackRequest, pack
    from five.packed_agents.training_facts import OPTIONS, training_facts

    folder = find_run(arguments.run)
    archive = ArchivedVersions(folder)
    given = {name: value for name, option in OPTIONS.items()
             if (value := getattr(arguments, option.removeprefix("--").replace("-", "_"))) is not None}

    def facts(version: int) -> TrainingFacts:
        return training_facts(folder, archive.config, version, given, arguments.cost)

    request = PackRequest(arguments.name, arguments.version, facts, arguments.weakness, arguments.summary,
                          arguments.license or LICENSE,
                          EvaluationRequest(arguments.games, arguments.seed, arguments.processes),
                          arguments.temperature)
    into = arguments.into or next(iter(agent_folders()), Path("agents"))
    print(pack(archive, request, into, print).path)
    return 0


def _renew(arguments: argparse.Namespace) -> int:
    from five.packed_agents.folder import find_agent
    from five.packed_agents.packing import EvaluationRequest, renew

    agent = find_agent(arguments.name)
    seed = agent.games.seed if arguments.seed is None else arguments.seed
    card = renew(agent, EvaluationRequest(arguments.games, seed, arguments.processes), arguments.weakness, print,
                 arguments.overrides)
    check = card.check
    print(f"check game: {check.timesteps} timesteps against {check.against}, hash {check.hash}")
    return 0
