"""Surgery: changes a running agent's model and observations without starting over (Berner et al. 2019, appendix B).

A `Plan` leads from one `AgentSpec` to the next by steps, each of which says what it holds. `derive` makes one from two
specifications; `list_changes` and `lint` say what it would do; `check` (five.agent.surgery.check_plan) measures it on
recorded play; `migrate_policy` and `migrate_learner` carry it out; a `MigrationChain` brings stored versions to the newest
schema. All but the check and the learner's part work without torch.
"""

from five.agent.surgery.chain import AppliedMigration, MigrationChain
from five.agent.surgery.change_table import StepChange, changes_to_markdown, list_changes
from five.agent.surgery.derive import derive_plan
from five.agent.surgery.lint import LintFinding, lint_plan
from five.agent.surgery.migrate import migrate_learner, migrate_policy
from five.agent.surgery.observations import convert_observations, convert_state
from five.agent.surgery.plan import MAX_PARAMETERS, Bounds, DeferredAnneal, Plan, PlanStage
from five.agent.surgery.spec import AgentSpec

__all__ = [
    "MAX_PARAMETERS", "AgentSpec", "DeferredAnneal", "Bounds", "MigrationChain", "StepChange", "LintFinding", "AppliedMigration", "Plan", "PlanStage",
    "as_markdown", "convert_observations", "convert_state", "derive", "lint", "migrate_learner", "migrate_policy",
    "table_of_changes"]
