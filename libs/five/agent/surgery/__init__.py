"""Surgery: changes of a running agent's model and observations without a restart (Berner et al. 2019, appendix B).

A `Plan` leads from one `AgentSpec` to the next in steps. `derive_plan` makes a plan from two specifications.
`list_changes` and `lint_plan` describe it, and `check_plan` (five.agent.surgery.check) measures it on recorded samples.
`migrate_policy` and `migrate_learner` apply it, and a `MigrationChain` migrates stored versions to the newest schema.
Only the check and the learner's migration need torch.
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
    "MAX_PARAMETERS", "AgentSpec", "AppliedMigration", "Bounds", "DeferredAnneal", "LintFinding", "MigrationChain",
    "Plan", "PlanStage", "StepChange", "changes_to_markdown", "convert_observations", "convert_state", "derive_plan",
    "lint_plan", "list_changes", "migrate_learner", "migrate_policy"]
