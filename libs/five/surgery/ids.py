"""What a row of an embedding stands for, by name: rows of the same name keep their weights."""

from dota.spaces import Layout


def id_labels(layout: Layout, space: str, rows: int) -> tuple[str, ...]:
    """A label for each of ``rows`` rows of an id space. Row 0 is "none"; rows that no id has are numbered."""
    names = ["none"]
    if space == "action":
        names += [action.name for action in layout.actions[1:]]
    labels = tuple(f"{space}:{name}" for name in names[:rows])
    return labels + tuple(f"{space}:#{i}" for i in range(len(labels), rows))
