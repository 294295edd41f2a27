"""What a row of an embedding stands for, by name: rows of the same name keep their weights."""

from functools import cache

from dota import registry


@cache
def id_labels(space: str, rows: int) -> tuple[str, ...]:
    """A label for each of ``rows`` rows of an id space, by the registry's names. Row 0 is "none"; spare rows, which no
    id has yet, are numbered."""
    names = registry.load().names[registry.SAME_IDS_AS.get(space, space)]
    # Among actions "none" is an entry of its own, and behind a name stands what it aims at.
    known = ["none", *(name.replace(" ", "/") for name in (names[1:] if space == "action" else names))]
    labels = tuple(f"{space}:{name}" for name in known[:rows])
    return labels + tuple(f"{space}:#{i}" for i in range(len(labels), rows))
