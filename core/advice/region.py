"""Parallel region: the key columns that its operators share."""

from collections.abc import Mapping, Sequence

from adapt.core.errors import UsageError
from adapt.core.table import Column, Table


def operators_named(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Operators with their key columns as typed, e.g. "count=user,page"."""
    operators: dict[str, tuple[str, ...]] = {}
    for text in given:
        name, equals, columns = (side.strip() for side in text.partition("="))
        keys = tuple(dict.fromkeys(column.strip() for column in columns.split(",")))
        if not (name and equals and all(keys)):
            raise UsageError(f"--operator takes OPERATOR=COLUMN,..., such as count=user,page (got {text!r})")
        if name in operators:
            raise UsageError(f"--operator {text}: {name} is given twice; name each operator once")
        operators[name] = keys
    return operators


def region_key(operators: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Key columns that all operators share, as the first orders them.

    Rows with equal keys in an operator have equal columns here, so partitioning by these columns, or any of them,
    keeps the state of every operator whole. All of them split the stream most finely.

    Args:
        operators: Key columns of each partitioned stateful operator; stateless ones do not matter.

    Source: partitioning functions, section 2: operators can be combined if their keys have a common subset.
    """
    common: tuple[str, ...] | None = None
    for name, keys in operators.items():
        if common is None:
            common = tuple(keys)
        shared = tuple(key for key in common if key in keys)
        if not shared:
            raise UsageError(
                f"operator {name} (by {', '.join(keys)}) shares no key column with the operators before it (by"
                f" {', '.join(common)}); put it in a parallel region of its own"
            )
        common = shared
    return common or ()


def region_table(operators: Mapping[str, Sequence[str]]) -> Table:
    """The operators of a region with their key columns."""
    key = ", ".join(region_key(operators))
    columns = (
        Column("operator"),
        Column("keys", about="key columns of the operator"),
        Column("region_keys", about="key columns that all operators share"),
    )
    rows = [(name, ", ".join(keys), key) for name, keys in operators.items()]
    return Table.from_rows("Parallel region", columns, rows, f"Partition the region by {key}.")
