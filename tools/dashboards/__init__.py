"""Grafana dashboards, made from the metrics' names. ``python -m tools.dashboards`` writes them to charts/dashboards."""
