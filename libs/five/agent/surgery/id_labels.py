"""Labels of embedding rows by name. Rows with equal labels keep their weights."""

from functools import cache

from dota import registry


@cache
def id_labels(space: str, rows: int) -> tuple[str, ...]:
    """Return a label for each of ``rows`` rows of an id space, from the registry's names.

    Row 0 is "none". Spare rows, which no id uses yet, are numbered.
    """
    names = registry.load().names[registry.SAME_IDS_AS.get(space, space)]
    # Actions have their own entry "none", and their names are followed by their target.
    known = ["none", *(name.replace(" ", "/") for name in (names[1:] if space == "action" else names))]
    labels = tuple(f"{space}:{name}" for name in known[:rows])
    return labels + tuple(f"{space}:#{i}" for i in range(len(labels), rows))
