"""Tables of a mutation test: scores by source file, and the mutants that survive."""

import math
from dataclasses import dataclass
from pathlib import Path

from tools.mutations.campaign import Outcome

Z_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Row:
    """Counts of the outcomes of one source file, one module or all."""

    name: str
    mutants: int
    killed: int
    by_own_test: int
    survived: int
    timeouts: int
    equivalent: int

    @property
    def score(self) -> float | None:
        """Share of the mutants that tests notice, a timeout included, without the equivalent ones."""
        tested = self.mutants - self.equivalent
        return (self.killed + self.timeouts) / tested if tested else None


def make_row(name: str, outcomes: list[Outcome]) -> Row:
    """Count the outcomes."""
    def count(verdict: str) -> int:
        return sum(outcome.verdict == verdict for outcome in outcomes)

    by_own_test = sum(outcome.by_own_test for outcome in outcomes if outcome.verdict in ("killed", "timeout"))
    return Row(name, len(outcomes), count("killed"), by_own_test, count("survived"), count("timeout"),
               count("equivalent"))


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a proportion (Wilson 1927)."""
    if not trials:
        return 0.0, 1.0
    share = successes / trials
    center = share + Z_95**2 / (2 * trials)
    spread = Z_95 * math.sqrt(share * (1 - share) / trials + Z_95**2 / (4 * trials**2))
    scale = 1 + Z_95**2 / trials
    return max(0.0, (center - spread) / scale), min(1.0, (center + spread) / scale)


def score_table(outcomes: list[Outcome]) -> str:
    """Return the table of scores: a row a source file, a module and all."""
    rows = []
    for module in dict.fromkeys(outcome.target.module for outcome in outcomes):
        of_module = [outcome for outcome in outcomes if outcome.target.module == module]
        sources = list(dict.fromkeys(outcome.target.source for outcome in of_module))
        rows += [make_row(source, [outcome for outcome in of_module if outcome.target.source == source])
                 for source in sources]
        if len(sources) > 1:
            rows.append(make_row(f"**{module}**", of_module))
    rows.append(make_row("**all**", outcomes))
    lines = ["| source | mutants | killed | by own test file | timeouts | survived | equivalent | score (95 %) |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.name} | {row.mutants} | {row.killed} | {row.by_own_test} | {row.timeouts} | "
                     f"{row.survived} | {row.equivalent} | {_score(row)} |")
    return "\n".join(lines)


def _score(row: Row) -> str:
    if row.score is None:
        return ""
    low, high = wilson_interval(row.killed + row.timeouts, row.mutants - row.equivalent)
    return f"{100 * row.score:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def describe(outcome: Outcome) -> str:
    """Return a mutant with its place, its change and what happened."""
    mutant = outcome.mutant
    return (f"{mutant.source}:{mutant.line} {mutant.definition or '(module)'}: {outcome.verdict}, {outcome.reason}\n"
            f"    - {mutant.before}\n    + {mutant.after}")


def write_report(folder: Path, outcomes: list[Outcome], title: str) -> str:
    """Write scores.md, survivors.md and all.md into the folder, and return the table of scores."""
    folder.mkdir(parents=True, exist_ok=True)
    table = score_table(outcomes)
    (folder / "scores.md").write_text(f"{title}\n\n{table}\n", encoding="utf-8")
    for name, verdicts in (("survivors.md", ("survived", "equivalent")),
                           ("all.md", ("killed", "timeout", "survived", "equivalent"))):
        listed = [describe(outcome) for outcome in outcomes if outcome.verdict in verdicts]
        (folder / name).write_text("\n".join([title, "", *listed]) + "\n", encoding="utf-8")
    return table
