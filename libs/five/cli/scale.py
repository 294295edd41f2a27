"""`five scale`: print the capacity of clusters of four sizes and how the autoscaler settles them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from five.capacity import connections
from five.capacity.cluster_sizes import Cluster, clusters
from five.capacity.inputs import FIGURES
from five.capacity.links import Link, largest_inference_pool, links, nearest
from five.capacity.overheads import overheads
from five.capacity.past_versions import PastPool
from five.capacity.simulation import ScenarioResult, Simulation, scenario
from five.cli.columns import align
from five.services.controller.autoscaler.rules import Kind
from rapid.atomic_file import replace_text
from rapid.config import MEBIBYTE

SINGLE = 3  # controller, opponents, evaluator
STORES = 2  # Redis for state and for parameters
HOURS = 4.0
ABSENT = 600.0  # seconds of an outage


@dataclass(frozen=True)
class TextTable:
    """A title, a header and rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def number(value: float) -> str:
    """Return a number with three significant digits and separators."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def volume(value: float) -> str:
    """Format bytes a second with a decimal unit."""
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} B/s" if value else "-"


def share(value: float | None) -> str:
    """Return a share of a limit in percent; '-' if the limit was not measured."""
    return "-" if value is None else f"{100 * value:.3g}%"


def figures_table() -> TextTable:
    """Return the table of the measured inputs."""
    return TextTable("Inputs", ("value", "unit", "source", "meaning"), tuple(
        (f"{f.value:.3g}" if f.value < 1 else f"{f.value:,.0f}" if f.value >= 1000 else f"{f.value:g}",
         f.unit, f.source, f.about) for f in FIGURES))


def sizes_table(found: Sequence[Cluster]) -> TextTable:
    """Return the table of pods and rates of each size."""
    columns: list[tuple[str, Callable[[Cluster], str]]] = [
        ("preset", lambda c: c.preset),
        ("games at once", lambda c: number(c.all_games)),
        ("rollout pods x games", lambda c: f"{c.rollouts:,} x {c.games}"),
        ("inference pods", lambda c: f"{c.inference:,}"),
        ("optimizers", lambda c: f"{c.optimizers:,}"),
        ("other pods", lambda c: str(SINGLE + STORES)),
        ("pods in all", lambda c: number(c.rollouts + c.inference + c.optimizers + SINGLE + STORES)),
        ("learned from, hero-steps/s", lambda c: number(c.learned_steps * c.heroes)),
        ("played, team-steps/s", lambda c: number(c.played_steps)),
        ("cores of the games", lambda c: number(c.game_cores)),
        ("segment, MB", lambda c: f"{c.segment_bytes / 1e6:.3g}"),
        ("seconds between versions", lambda c: number(c.version_seconds)),
        ("messages/s, all links", lambda c: number(sum(link.messages for link in traffic(c)))),
        ("bytes/s, all links", lambda c: volume(sum(link.bytes for link in traffic(c)))),
        ("connections to the state's Redis, maximum", lambda c: number(connections.of_state(c))),
        ("share of Redis' connection limit", lambda c: share(connections.of_state(c) / connections.MAX_CLIENTS)),
        ("link nearest to its limit", lambda c: nearest(links(c)).name),
        ("used share of that limit", lambda c: share(nearest(links(c)).used)),
        ("more pods raise that limit", lambda c: "yes" if nearest(links(c)).spreads else "no"),
    ]
    return TextTable("Sizes", ("", *(c.name for c in found)),
                     tuple((name, *(value(c) for c in found)) for name, value in columns))


def traffic(c: Cluster) -> list[Link]:
    """Return the links that carry messages. Open streams are not messages."""
    return [link for link in links(c) if not link.name.startswith("streams")]


def links_table(c: Cluster) -> TextTable:
    """Return the table of one size's links."""
    return TextTable(f"Links, {c.name}",
                     ("link", "messages/s", "bytes/s", "processes at the narrow end", "of its limit",
                      "more pods raise the limit"), tuple(
        (link.name, number(link.messages), volume(link.bytes), f"{link.ends:,}", share(link.used),
         "yes" if link.spreads else "no") for link in links(c)))


def overheads_table(found: Sequence[Cluster]) -> TextTable:
    """Return the table of the overheads other than links."""
    def row(c: Cluster) -> tuple[str, ...]:
        s = overheads(c)
        return (c.name, f"{s.sidecars:,} / {number(s.sidecar_cores)}", f"{s.publishing:.3g} s",
                share(s.publishing_share), f"{s.checkpoint:.3g} s", f"{s.versions:.2f}", f"{s.lost / 60:.3g} min",
                f"{s.leases:,}", share(s.leases_share))

    return TextTable("Overheads", (
        "", "sidecars with games / their cores", "publishing a version", "share of its time", "writing a checkpoint",
        "versions meanwhile", "a crash loses at most", "leases", "share of Redis' core"), tuple(row(c) for c in found))


def versions_table(found: Sequence[Cluster]) -> TextTable:
    """Return the table of how long one Redis core takes to distribute a version."""
    def row(c: Cluster, half: bool) -> tuple[str, ...]:
        most = largest_inference_pool(c, half)
        seconds = c.version_seconds * c.inference / most
        return (c.name, "bf16" if half else "fp32", f"{c.parameter_bytes / (2e6 if half else 1e6):,.0f} MB",
                f"{c.inference:,}", f"{seconds:.3g} s", f"{c.version_seconds:.3g} s", f"{most:,}")

    return TextTable("Distributing a version", (
        "", "type", "size", "readers", "all have it after", "next version after", "most readers"), tuple(
        row(c, half) for c in found for half in (False, True)))


def past_table(found: Sequence[Cluster]) -> TextTable:
    """Return the table of the cost of past versions, as configured and with one version a group of games."""
    def row(pool: PastPool) -> tuple[str, ...]:
        drawn = f"{pool.slots:,} at a time" if pool.slots else "one a group"
        return (pool.cluster.name, drawn, number(pool.steps), number(pool.versions), f"{pool.rows:.3g}",
                f"{pool.servers:.3g} of {pool.cluster.inference:,}", f"{pool.bytes_each / 1e6:,.0f} MB",
                f"{pool.cluster.config.services.inference.past_mebibytes * MEBIBYTE / 1e6:,.0f} MB",
                volume(pool.loads * pool.version_bytes))

    kinds = [(c, slots) for c in found for slots in sorted({0, c.config.league.active_past_versions})]
    return TextTable("Past versions", (
        "", "drawn", "their team-steps/s", "most in play", "team-steps of one in flight", "servers for their passes",
        "memory needed a server", "memory configured", "loaded"), tuple(row(PastPool(c, n)) for c, n in kinds))


def scenarios(c: Cluster) -> list[tuple[str, ScenarioResult]]:
    """Return the simulated scenarios of a cluster."""
    base: dict[Kind, int] = {"rollout": c.rollouts, "inference": c.inference}
    small: dict[Kind, int] = {"rollout": max(c.rollouts // 10, 1), "inference": max(c.inference // 4, 1)}
    large: dict[Kind, int] = {"rollout": 2 * c.rollouts, "inference": c.inference}

    def vanish(run: Simulation) -> None:
        run.pods["rollout"].lose(0.5, run.now, ABSENT)

    def double(run: Simulation) -> None:
        run.optimizers = 2.0

    def hold(run: Simulation) -> None:
        run.held_until = run.now + ABSENT

    return [("start with a tenth of the rollouts", scenario(c, small, None, HOURS)),
            ("start with twice the rollouts", scenario(c, large, None, HOURS)),
            ("half of the rollouts fail for 10 minutes", scenario(c, base, vanish, HOURS)),
            ("Redis is unavailable for 10 minutes", scenario(c, base, hold, HOURS)),
            ("the optimizers double", scenario(c, base, double, HOURS))]


def scaling_table(found: Sequence[Cluster]) -> TextTable:
    """Return the table of how the autoscaler settles each size. A laptop has no cluster to scale."""
    def row(c: Cluster, name: str, o: ScenarioResult) -> tuple[str, ...]:
        recovered = "never" if o.recovered is None else f"{o.recovered / 60:.0f} min"
        return (c.name, name, " + ".join(f"{n:,}" for n in o.before), " + ".join(f"{n:,}" for n in o.after),
                share(o.slowest), recovered, f"{o.settled / 60:.0f} min", share(o.overshoot), str(o.turns),
                share(o.speed))

    return TextTable("The autoscaler, simulated", (
        "", "scenario", "rollouts + inference before", "after", "slowest learning", "90% of full speed after",
        "last change after", "overshoot", "turns", "speed at the end"), tuple(
        row(c, name, outcome) for c in found[1:] for name, outcome in scenarios(c)))


def tables() -> list[TextTable]:
    """Return all tables of the command."""
    found = clusters()
    return [sizes_table(found), *(links_table(c) for c in found), versions_table(found[1:]), past_table(found[1:]),
            overheads_table(found), scaling_table(found), figures_table()]


def as_text(table: TextTable) -> str:
    """Return a table as plain text."""
    return "\n".join([table.title, "-" * len(table.title), align([table.header, *table.rows])]) + "\n"


def as_markdown(table: TextTable) -> str:
    """Return a table as Markdown."""
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    head = [f"### {table.title}", "", line(table.header), line(["---"] * len(table.header))]
    return "\n".join(head + [line(row) for row in table.rows]) + "\n"


BEGIN = "<!-- five scale --markdown: begin -->\n"
END = "<!-- five scale --markdown: end -->\n"


def replace_tables(page: str, body: str) -> str:
    """Return the page with the part between its two markers replaced. Raises ValueError if a marker is missing."""
    if BEGIN not in page or END not in page:
        raise ValueError(f"the page lacks the markers {BEGIN.strip()} and {END.strip()}")
    before, rest = page.split(BEGIN, 1)
    return before + BEGIN + "\n" + body + "\n" + END + rest.split(END, 1)[1]


def markdown() -> str:
    """Return all tables of docs/scale.md."""
    return "\n".join(as_markdown(table) for table in tables())


def scale(as_page: bool, as_json: bool, into: str | None = None) -> int:
    """Print the tables, or write them into a page. Return the exit status. Raises OSError, and RuntimeError for a page
    without the markers."""
    if into is not None:
        path = Path(into)
        page = path.read_text(encoding="utf-8")
        try:
            page = replace_tables(page, markdown())
        except ValueError as error:
            raise RuntimeError(f"{path}: {error}") from None
        replace_text(path, page)
    elif as_page:
        print(markdown(), end="")
    elif as_json:
        print(json.dumps([asdict(table) for table in tables()], indent=1))
    else:
        print("\n".join(as_text(table) for table in tables()), end="")
    return 0
