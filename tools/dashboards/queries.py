"""PromQL of the dashboards. Every series is limited to the namespace and run selected at the top of the page."""

CHOSEN = 'namespace=~"$namespace", run=~"$run"'
LONG = "1h"  # window of what happens a few times an hour on a small run: games, ratings


def series(metric: str, **labels: str) -> str:
    """Return a selector. A label's value that begins with ~ is a pattern."""
    wanted = [f'{name}=~"{value[1:]}"' if value.startswith("~") else f'{name}="{value}"'
              for name, value in labels.items()]
    return f"{metric}{{{', '.join([CHOSEN, *wanted])}}}"


def rate(metric: str, window: str = "$__rate_interval", **labels: str) -> str:
    """Return a counter's growth a second."""
    return f"rate({series(metric, **labels)}[{window}])"


def increase(metric: str, window: str = LONG, **labels: str) -> str:
    """Return a counter's growth over the window."""
    return f"increase({series(metric, **labels)}[{window}])"


def total(expression: str, *by: str) -> str:
    """Return the sum over all labels except ``by``."""
    return f"sum by ({', '.join(by)}) ({expression})" if by else f"sum({expression})"


def largest(expression: str, *by: str) -> str:
    """Return the maximum over all labels except ``by``."""
    return f"max by ({', '.join(by)}) ({expression})" if by else f"max({expression})"


def average(expression: str, *by: str) -> str:
    """Return the mean over all labels except ``by``."""
    return f"avg by ({', '.join(by)}) ({expression})" if by else f"avg({expression})"


def quantile(share: float, histogram: str, *by: str, window: str = "$__rate_interval", **labels: str) -> str:
    """Return the value that a share of a histogram's observations do not exceed."""
    buckets = total(rate(f"{histogram}_bucket", window, **labels), "le", *by)
    return f"histogram_quantile({share:g}, {buckets})"


def mean(histogram: str, *by: str, window: str = "$__rate_interval", **labels: str) -> str:
    """Return the mean of a histogram's observations."""
    return (f"{total(rate(f'{histogram}_sum', window, **labels), *by)} / "
            f"{total(rate(f'{histogram}_count', window, **labels), *by)}")


def buckets(histogram: str, window: str = "$__rate_interval") -> str:
    """Return the observations a second by bucket, for a heatmap."""
    return total(rate(f"{histogram}_bucket", window), "le")
