"""`adapt cluster pack`: packages for executors as one archive."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from adapt.cli.options.groups import option
from adapt.cli.options.result import ForceOption
from adapt.cli.terminal.output import Format, FormatOption, narrate, narrate_written, show

if TYPE_CHECKING:
    from adapt.core.table import Table


def pack(
    out: Annotated[Path, option("Archive to write.", "FILE.tar.gz", "--out", "-o")],
    *,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
) -> "Table":
    """Pack the packages of this Python that Spark tasks need.

    For executors with the same minor version of Python, on the same kind of machine. Commands send these packages by
    themselves; an archive spares that, and serves jobs of your own. Does not start Java.

    Example: adapt cluster pack -o env.tar.gz
    """
    from adapt.traces.spark.packages import FOLDER, SEARCHED, packages_table, packed_once
    from adapt.traces.store.atomic import check_free, write_whole

    check_free(out, force=force)
    write_whole(out, packed_once().read_bytes(), force=force)
    narrate_written(out)
    table = packages_table()
    show(table, format)
    narrate(f"adapt: --spark-conf spark.archives={out}#{FOLDER}")
    narrate(f"spark-submit: --archives {out}#{FOLDER} --conf spark.executorEnv.PYTHONPATH={SEARCHED}")
    return table
