"""Surgery: changes a running agent's model and observations without starting over (Berner et al. 2019, appendix B).

A `Plan` leads from one `AgentSpec` to the next by steps, each of which says what it holds. `derive` makes one from two
specifications; `table_of_changes` and `lint` say what it would do; `check` (five.agent.surgery.check) measures it on
recorded play; `migrate_policy` and `migrate_learner` carry it out; a `Chain` brings stored versions to the newest
schema. All but the check and the learner's part work without torch.
"""

from five.agent.surgery.chain import Chain, Link
from five.agent.surgery.changes import Change, as_markdown, table_of_changes
from five.agent.surgery.derive import derive
from five.agent.surgery.lint import Finding, lint
from five.agent.surgery.migrate import migrate_learner, migrate_policy
from five.agent.surgery.observations import convert_observations, convert_state
from five.agent.surgery.plan import MAX_PARAMETERS, Anneal, Bounds, Plan, Stage
from five.agent.surgery.spec import AgentSpec

__all__ = [
    "MAX_PARAMETERS", "AgentSpec", "Anneal", "Bounds", "Chain", "Change", "Finding", "Link", "Plan", "Stage",
    "as_markdown", "convert_observations", "convert_state", "derive", "lint", "migrate_learner", "migrate_policy",
    "table_of_changes"]
