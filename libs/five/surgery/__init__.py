"""Surgery: changes a running agent's model and observations without starting over (Berner et al. 2019, appendix B).

A `Plan` leads from one `AgentSpec` to the next by steps, each of which says what it holds. `derive` makes one from two
specifications; `table_of_changes` and `lint` say what it would do; `five.surgery.check.check` measures it on recorded
play; `migrate_policy` and `migrate_learner` carry it out; a `Chain` brings stored versions to the newest schema. All
but the check and the learner's part work without torch.
"""

from five.surgery.chain import Chain, Link
from five.surgery.changes import Change, as_markdown, table_of_changes
from five.surgery.derive import derive
from five.surgery.lint import Finding, lint
from five.surgery.migrate import migrate_learner, migrate_policy
from five.surgery.observations import convert_observations, convert_state
from five.surgery.plan import MAX_PARAMETERS, Anneal, Bounds, Plan, Stage
from five.surgery.spec import AgentSpec

__all__ = [
    "MAX_PARAMETERS", "AgentSpec", "Anneal", "Bounds", "Chain", "Change", "Finding", "Link", "Plan", "Stage",
    "as_markdown", "convert_observations", "convert_state", "derive", "lint", "migrate_learner", "migrate_policy",
    "table_of_changes"]
