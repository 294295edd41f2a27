"""Cost: optimization compute in PFLOP/s-days, as the paper counts it, and the machines in use."""

from tools.dashboards.frame import Dashboard, Row
from tools.dashboards.panels import Query, chart, number
from tools.dashboards.queries import average, largest, rate, series, total

PFLOPS_DAY = "8.64e19"  # floating point operations
SPENT = f"{largest(series('five_optimizer_run_flop'))} / {PFLOPS_DAY}"
PACE = f"{total(rate('five_optimizer_flop_total', '5m'))} / 1e15"
HERO_STEPS = total(rate("five_optimizer_received_hero_steps_total", "5m"))
RERUN = 150.0  # PFLOP/s-days, Berner et al. 2019

BOARD = Dashboard("cost", "Five / Cost", "Optimization compute so far, its pace, and what else is running.", [
    Row("Optimization compute", [
        number("PFLOP/s-days so far", "Floating point operations of all gradient steps since the run began, as Berner "
               "et al. 2019, appendix E counts them: 770 ± 50 for OpenAI Five at the OG match, 150 ± 5 for Rerun.",
               Query(SPENT), width=6, decimals=6),
        number("PFLOP/s", "Pace of learning.", Query(PACE), width=6, decimals=6),
        number("Of Rerun", "Share of the 150 PFLOP/s-days that Rerun took.", Query(f"{SPENT} / {RERUN:g}"),
               "percentunit", width=6, decimals=6),
        number("Rerun's compute at this pace", "Time that 150 PFLOP/s-days take.",
               Query(f"86400 * {RERUN:g} / ({PACE})"), "s", width=6),
        chart("PFLOP/s-days so far", "Kept through restarts.", Query(SPENT, "so far"), unit="sci", least=0),
        chart("Pace", "PFLOP/s of all optimizers.", Query(PACE, "PFLOP/s"), unit="sci", least=0),
        chart("Operations of a hero-step", "Floating point operations of learning for each timestep of a hero that "
              "came in. Follows the model's size and sample reuse.",
              Query(f"{total(rate('five_optimizer_flop_total', '5m'))} / {HERO_STEPS}", "operations"), unit="sci",
              least=0),
        chart("Skill for compute", "TrueSkill of the version rated last, and compute so far.",
              Query(largest(series("five_evaluator_trueskill_rating")), "TrueSkill"), Query(SPENT, "PFLOP/s-days"))]),
    Row("Machines", [
        chart("CPU cores in use", "By kind of service. In the paper rollouts, inference and "
              "optimizers cost about 30% each (appendix E).",
              Query(total(rate("process_cpu_seconds_total"), "kind"), "{{kind}}"), least=0, stacked=True),
        chart("CPU time", "Core-hours in the last day, by kind of service.",
              Query(f"{total('increase(' + series('process_cpu_seconds_total') + '[1d])', 'kind')} / 3600", "{{kind}}"),
              least=0, stacked=True),
        chart("Hero-steps a core-second", "Timesteps received for each second of all services' CPU time.",
              Query(f"{HERO_STEPS} / {total(rate('process_cpu_seconds_total', '5m'))}", "hero-steps"), least=0),
        chart("Optimizers waiting", "Mean share of their time without a batch: the most expensive machines at rest.",
              Query(average(rate("five_optimizer_waited_seconds_total", "5m")), "waiting"), unit="percentunit", least=0,
              most=1)]),
])
