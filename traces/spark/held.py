"""What this process holds of the results of Spark tasks."""

import logging
import re

from adapt.core.errors import EnvironmentFailure

_LOG = logging.getLogger(__name__)

TEXT_BYTES = 40
"""Bytes of a text or binary value in a result, with its offset: keys of about 32 bytes."""

COPIES = 4
"""Copies of a result while it is read and put in order, with the index of its keys."""

RESULT_SETTING, RESULT_BYTES = "spark.driver.maxResultSize", "1g"
"""The setting that limits a result, and its default."""

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def result_bytes(rows: int, schema: str) -> int:
    """Bytes of a result of Spark tasks.

    Args:
        rows: The most rows of the result.
        schema: Their Spark schema, as `name type, name type`.
    """
    kinds = [column.split()[-1] for column in schema.split(",")]
    return rows * sum(TEXT_BYTES if kind in ("string", "binary") else 8 for kind in kinds)


def held_bytes(rows: int, schema: str) -> int:
    """Memory that a result takes here, at most; arguments as in `result_bytes`."""
    return COPIES * result_bytes(rows, schema)


def check_held(doing: str, rows: int, schema: str, limit: str) -> None:
    """Log what this process will hold, before the work starts.

    Args:
        doing: The work, such as "counting keys".
        limit: The value of `RESULT_SETTING`.
    """
    size = result_bytes(rows, schema)
    _LOG.info("%s: this process holds at most %s rows, %s", doing, f"{rows:,}", shown(held_bytes(rows, schema)))
    most = _bytes_of(limit)
    if most and size > most:
        raise EnvironmentFailure(
            f"{doing}: {rows:,} rows would come to this process, {shown(size)}, above {RESULT_SETTING} ({limit});"
            f" count fewer keys (a larger --epsilon), or add --spark-conf {RESULT_SETTING}={-(-size >> 30) + 1}g"
        )


def shown(size: int) -> str:
    """Bytes for people, in MB."""
    return f"{-(-size // 10**6):,} MB"


def _bytes_of(text: str) -> int:
    """A size as Spark writes it; 0 for no limit."""
    found = re.fullmatch(r"\s*(\d+)\s*([bkmgt]?)b?\s*", text.lower())
    return int(found[1]) * _UNITS[found[2]] if found else 0
