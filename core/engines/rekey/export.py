"""Export of rekey tables: JSON, CSV, SQL, Python and Java."""

from adapt.core.engines.exporter import Bundle, ExportablePlan, File
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.engines.rekey.marks import HighBits
from adapt.core.engines.rekey.programs import java_file, python_file
from adapt.core.engines.rekey.sql import dialects_of, sql_file
from adapt.core.engines.rekey.table import RekeyTable
from adapt.core.phrases import counted

JSON, CSV = "rekey.json", "rekey.csv"

_USE = """\
Replace each key of the table before {engine} sees it, and leave every other key as it is. {engine}'s own hash then
places {pinned} and {split} as planned on {channels} channels (each a {channel}), with no partitioner of
your own. Placement and state of all other keys stay as they are. `{{folder}}` has the table as expressions and
programs; in Python:

```python
from rekey import original, rekey

rekey(key)  # the key to send; records of a split key take turns
original(rekey(key)) == key  # undo
```

- The job must have {channels} channels{groups}. For another number, plan and export again.
- {undo}
- {checked}
{flink}{splitting}"""

_FLINK = """\
- The table is for jobs that key by `String` or `Long`. Flink SQL hashes its own row format; its engine is `flink-sql`.
"""

_FLINK_SQL = """\
- The table is for Table and SQL jobs that group or join by this column alone, of type STRING, BIGINT or BYTES (an INT
  from 0 up has the hash of the same BIGINT). Columns of a window TVF do not count. Local aggregation
  (`table.optimizer.agg-phase-strategy`) sends partial results instead of rows; a hot key may need no more than that.
"""

_SPLITTING = """\

## Split keys

Each record of a split key goes to one of its replacements, all on different channels: round robin per producer, at
random, or by a second key. By a second key, equal pairs meet: a join replicates the other side to every replacement,
and distinct values are counted exactly.

Aggregate by the replaced key first, then merge by the original key, per window:

| aggregate | step 1, by the replaced key | step 2, by the original key |
|---|---|---|
| count | `COUNT(*)` as `n` | `SUM(n)` |
| sum | `SUM(x)` as `s` | `SUM(s)` |
| min, max | `MIN(x)`, `MAX(x)` | the same of the partial results |
| avg | `SUM(x)` as `s`, `COUNT(x)` as `c` | `SUM(s) / SUM(c)` |
| approximate distinct | a sketch of `x` | merge the sketches |
| distinct | a count, if records choose their replacement by `x` | the sum of the counts |
| top k | the k largest of each replaced key | the k largest of these |

What cannot be split: state machines and patterns over a key's records in order; sessions by gaps, unless step 2 joins
those that overlap; exact medians and percentiles; first and last without a time to compare; deduplication, unless
records choose by what is deduplicated; and whatever writes to another system once per key. In Flink, replace the key in
a `map` before `keyBy`: a `KeySelector` is called more than once and must not take turns.
"""


def export_rekeyed(plan: ExportablePlan, max_parallelism: int | None) -> Bundle:
    """The rekey table of a plan, checked against its own keys."""
    return rekey_bundle(rekey_table(plan, max_parallelism=max_parallelism))


def rekey_bundle(table: RekeyTable) -> Bundle:
    """The files of a rekey table."""
    known = definition_of(table.job.engine)
    files = {
        JSON: File(table.to_json(), "keys and their replacements"),
        CSV: File(table.to_csv().encode(), "keys and their replacements as rows, for joins"),
        "rekey.py": File(python_file(table), "`rekey` and `original` in Python"),
        "Rekey.java": File(java_file(table), "`Rekey.key` and `Rekey.original` in Java"),
    }
    for dialect in dialects_of(table.job.engine):
        files[dialect.file] = File(sql_file(table, dialect), f"expressions for {dialect.title}")
    words = {
        "engine": known.title,
        "channel": known.channel,
        "channels": f"{table.job.channels:,}",
        "pinned": counted(table.pinned, "pinned key"),
        "split": counted(table.split, "split key"),
        "groups": "" if table.job.max_parallelism is None else f", of max parallelism {table.job.max_parallelism}",
        "flink": {Engine.FLINK: _FLINK, Engine.FLINK_SQL: _FLINK_SQL}.get(table.job.engine, ""),
        "undo": _undo(table),
        "checked": _checked(table),
    }
    splitting = _SPLITTING.format(**words) if table.split else ""
    return Bundle(files, _USE.format(**words, splitting=splitting))


def _undo(table: RekeyTable) -> str:
    if isinstance(table.mark, HighBits):
        return (
            f"A replacement is the key plus a multiple of 2^{table.mark.bits}, or minus one if the key is negative."
            f" Undo: the remainder by 2^{table.mark.bits}."
        )
    return (
        f"A replacement is the key, `{table.mark.text}` and a suffix. Undo: all before the first `{table.mark.text}`."
    )


def _checked(table: RekeyTable) -> str:
    mark = f"bits from 2^{table.mark.bits} on" if isinstance(table.mark, HighBits) else f"`{table.mark.text}`"
    if table.trace is None:
        return f"No key of the plan has {mark}; other keys were not checked. Add `--trace TRACE` to check all."
    return f"No key of the trace has {mark}, so no replacement is the same as another key."
