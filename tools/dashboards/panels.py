"""Panels of the dashboards, all in one style."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import heatmap, prometheus, stat, timeseries, trend
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Panel = Builder[dashboard.Panel]
GREEN, YELLOW, RED, BLUE = "green", "yellow", "red", "blue"
CLEAR = "transparent"
HEIGHT = 8
COLUMNS = 24
SOURCE = dashboard.DataSourceRef(type_val="prometheus", uid="${datasource}")


class Query(NamedTuple):
    """Query of one or more lines of a panel. ``dashed``: a target that the others are compared with."""

    expression: str
    name: str = ""
    dashed: bool = False


class ThresholdBands(NamedTuple):
    """Coloured ranges: each (from, colour), the first from minus infinity. ``line``: borders are drawn as lines too."""

    steps: Sequence[tuple[float | None, str]]
    line: bool = False


def _thresholds(bands: ThresholdBands) -> builders.ThresholdsConfig:
    steps = [dashboard.Threshold(value=value, color=color) for value, color in bands.steps]
    return builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)


def _target(query: Query, index: int, form: PromQueryFormat = PromQueryFormat.TIME_SERIES,
            instant: bool = False) -> prometheus.Dataquery:
    target = (prometheus.Dataquery().expr(query.expression).ref_id(chr(ord("A") + index)).datasource(SOURCE)
              .format(form))
    if query.name:
        target.legend_format(query.name)
    return target.instant() if instant else target.range()


def _finish(panel: Any, title: str, meaning: str, queries: Sequence[Query], width: int, height: int,
            form: PromQueryFormat = PromQueryFormat.TIME_SERIES, instant: bool = False) -> Any:
    panel.title(title).description(meaning).datasource(SOURCE).span(width).height(height)
    for index, query in enumerate(queries):
        panel.with_target(_target(query, index, form, instant))
    return panel


def chart(title: str, meaning: str, *queries: Query, unit: str = "short", width: int = 12, height: int = HEIGHT,
          bands: ThresholdBands | None = None, stacked: bool = False, least: float | None = None,
          most: float | None = None, logarithmic: bool = False, points: bool = False) -> Panel:
    """Return a panel of lines over time. ``meaning`` says what is shown and what a good value is."""
    panel: Any = _finish(timeseries.Panel(), title, meaning, queries, width, height)
    panel.unit(unit).line_width(1.5).fill_opacity(25 if stacked else 0)
    panel.show_points(common.VisibilityMode.ALWAYS if points else common.VisibilityMode.NEVER)
    panel.legend(common_builders.VizLegendOptions().show_legend(True).display_mode(common.LegendDisplayMode.LIST)
                 .placement(common.LegendPlacement.BOTTOM).calcs(["lastNotNull"]))
    panel.tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
                  .sort(common.SortOrder.DESCENDING))
    if least is not None:
        panel.min(least)
    if most is not None:
        panel.max(most)
    if stacked:
        panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    if logarithmic:
        panel.scale_distribution(common_builders.ScaleDistributionConfig().type(common.ScaleDistribution.LOG).log(10))
    if bands is not None:
        mode = common.GraphThresholdsStyleMode.LINE_AND_AREA if bands.line else common.GraphThresholdsStyleMode.AREA
        panel.thresholds(_thresholds(bands))
        panel.thresholds_style(common_builders.GraphThresholdsStyleConfig().mode(mode))
    for query in queries:
        if query.dashed:
            panel.override_by_name(query.name, [
                dashboard.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]}),
                dashboard.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "text"})])
    made: Panel = panel
    return made


def number(title: str, meaning: str, query: Query, unit: str = "short", width: int = 4, height: int = 4,
           bands: ThresholdBands | None = None, decimals: int | None = None,
           graph: Literal["area", "none"] = "area") -> Panel:
    """Return a panel of one current value."""
    panel: Any = _finish(stat.Panel(), title, meaning, [query], width, height)
    panel.unit(unit).graph_mode(common.BigValueGraphMode(graph)).color_mode(common.BigValueColorMode.VALUE)
    panel.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    panel.thresholds(_thresholds(bands or ThresholdBands([(None, BLUE)])))
    if decimals is not None:
        panel.decimals(decimals)
    made: Panel = panel
    return made


def heat(title: str, meaning: str, query: Query, unit: str = "short", width: int = 12, height: int = HEIGHT) -> Panel:
    """Return a heatmap of a histogram over time; ``query`` gives its cumulative buckets by ``le``."""
    panel: Any = _finish(heatmap.Panel(), title, meaning, [query._replace(name="{{le}}")], width, height,
                         PromQueryFormat.HEATMAP)
    panel.calculate(False).y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(common.AxisPlacement.LEFT))
    panel.color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").exponent(0.5).steps(64)
                .fill("dark-orange").reverse(False))
    panel.cell_gap(1).show_legend().mode(common.TooltipDisplayMode.SINGLE)
    made: Panel = panel
    return made


def against(title: str, meaning: str, x: Query, *queries: Query, unit: str = "short", width: int = 12,
            height: int = HEIGHT) -> Panel:
    """Return a panel of lines over another measure ``x`` instead of time."""
    panel: Any = _finish(trend.Panel(), title, meaning, [x, *queries], width, height)
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="joinByField", options={
        "byField": "Time", "mode": "outer"}))
    panel.x_field(x.name).unit(unit).show_points(common.VisibilityMode.ALWAYS).line_width(1.5)
    made: Panel = panel
    return made
