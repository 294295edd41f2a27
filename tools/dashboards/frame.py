"""A dashboard: its variables, its links to the others, and its panels in order."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

from tools.dashboards.panels import SOURCE, Panel

TAG = "five"
EVERYWHERE = "five_process_started_info"  # every process shows it


class Row(NamedTuple):
    """Panels under a heading. ``cluster``: they have data only on a Kubernetes cluster with the autoscaler."""

    title: str
    panels: Sequence[Panel]
    cluster: bool = False


class Dashboard(NamedTuple):
    """A dashboard. ``name`` names its file and its address in Grafana (uid five-<name>)."""

    name: str
    title: str
    about: str
    rows: Sequence[Row]
    hours: str = "now-6h"

    def json(self) -> str:
        """Return the dashboard's JSON for Grafana; equal panels give equal text."""
        board = (builders.Dashboard(self.title).uid(f"five-{self.name}").description(self.about).tags([TAG])
                 .timezone("browser").time(self.hours, "now").refresh("30s").readonly()
                 .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
                 .link(builders.DashboardLink("Five").type(dashboard.DashboardLinkType.DASHBOARDS).tags([TAG])
                       .as_dropdown(True).include_vars(True).keep_time(True)))
        for variable in _variables():
            board.with_variable(variable)
        for row in self.rows:
            board.with_row(builders.Row(row.title))
            for panel in row.panels:
                board.with_panel(panel)
        made = board.build()
        for number, each in enumerate(made.panels or [], 1):
            each.id_val = number
        return json.dumps(made, cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _variables() -> list[builders.DatasourceVariable | builders.QueryVariable]:
    source = builders.DatasourceVariable("datasource").label("Data source").type("prometheus").multi(False)
    # Outside Kubernetes there is no such label: all then means none as well.
    namespace = (builders.QueryVariable("namespace").label("Namespace").datasource(SOURCE)
                 .query(f"label_values({EVERYWHERE}, namespace)").include_all(True).all_value(".*").multi(False)
                 .current(dashboard.VariableOption(selected=True, text="All", value="$__all"))
                 .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
                 .sort(dashboard.VariableSort.ALPHABETICAL_ASC))
    run = (builders.QueryVariable("run").label("Run").datasource(SOURCE)
           .query(f'label_values({EVERYWHERE}{{namespace=~"$namespace"}}, run)').include_all(False).multi(False)
           .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
           .sort(dashboard.VariableSort.ALPHABETICAL_ASC))
    return [source, namespace, run]
