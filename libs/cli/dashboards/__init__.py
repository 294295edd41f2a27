"""Grafana dashboards, made from the metrics' names. ``python -m cli.dashboards`` writes them to charts/dashboards."""
