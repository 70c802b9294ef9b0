"""A plan for Flink: a key group for each key, and classes that give it a hash code that Flink takes there."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.csv as pc

from adapt.core.engines.any_language.export import READER
from adapt.core.engines.bundle import Bundle, File, Program
from adapt.core.engines.exporter import ExportablePlan
from adapt.core.engines.flink.planned_groups import GroupPlan, group_plan
from adapt.core.engines.flink.routes import flink_routes
from adapt.core.engines.hexadecimal import hex_of
from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput
from adapt.core.partitioning.schemes.key_groups import channels_of_groups

HEADER = "adapt.flink/1"
GROUPS, TABLE = "groups.txt", "groups.csv"

_SELECTOR = """\
import java.nio.file.Path;
import org.apache.flink.api.java.functions.KeySelector;

public class ByPlan implements KeySelector<Visit, PlacedKey> {
  private transient FlinkGroups groups;

  public PlacedKey getKey(Visit visit) throws Exception {
    if (groups == null) groups = new FlinkGroups(Path.of("{folder}")); // on every worker
    return groups.place(visit.user);
  }
}
"""

_USE = """\
Set the max parallelism of the job to {groups} before its first start; it can never be changed. At a parallelism of
{channels} each subtask has the keys of its channel. At any other, subtasks have contiguous ranges of the same key
groups, and a rescaled job moves whole groups, as Flink does without a plan.

Put the three Java files into the job (under the `package` line of its own, if it has one), and key the stream by a
`PlacedKey`: its hash code is a route, which Flink's own hash takes to the planned key group, and two are equal where
their keys are, so that state is kept by key. Flink serialises it as a POJO.

```java
{selector}```

```java
env.setMaxParallelism({groups});
visits.keyBy(new ByPlan()).process(...);
```

Keys are `String`, `Long` or `byte[]`, as the plan has them. State lies where the route leads, so a job keeps its plan:
with another one, a savepoint of this one does not fit. Try it: keys in hex in, key group and route out.

    javac -d classes {folder}/*.java
    printf '%s\\n' 616263 | java -cp classes FlinkGroups {folder}
"""


def flink_bundle(plan: ExportablePlan, max_parallelism: int | None) -> Bundle:
    """The groups of the explicit keys, a route to each group, and the program that gives each key a route of its own.

    Raises:
        BadInput: the plan is how an engine places keys by itself.
        UsageError: the max parallelism does not go with the plan.
    """
    grouped = group_plan(plan, max_parallelism)
    if isinstance(plan.scheme, Engine):
        raise BadInput(f"scheme {plan.scheme} is what that engine does by itself; build a plan of another, e.g. hybrid")
    routes = flink_routes(grouped.groups).tolist()
    numbers = pa.array(range(grouped.groups), pa.int32())
    subtasks = channels_of_groups(numbers.to_numpy(), plan.channels, grouped.groups)
    table = pa.table({"group": numbers, "subtask": pa.array(subtasks), "route": pa.array(routes, pa.int32())})
    packed = pa.BufferOutputStream()
    pc.write_csv(table, packed)
    files = {
        GROUPS: File(_text(grouped), "the key groups of explicit keys, as Java reads them"),
        TABLE: File(packed.getvalue().to_pybytes(), "each key group with its subtask and its least route"),
    }
    programs = {
        READER.file: replace(READER, about="reads plan.txt"),
        "FlinkGroups.java": Program("says the key group and the route of a key", __package__, "FlinkGroups.java"),
        "PlacedKey.java": Program("a key that Flink puts into its group", __package__, "PlacedKey.java"),
    }
    use = (
        _USE.replace("{selector}", _SELECTOR)
        .replace("{groups}", str(grouped.groups))
        .replace("{channels}", str(plan.channels))
    )
    return Bundle(files, use, programs)


def _text(grouped: GroupPlan) -> bytes:
    """Lines of ASCII text: a name, a blank, a value; an explicit key as `key GROUP HEX`, or null for the hex."""
    plan = grouped.plan
    head = [HEADER, f"max_parallelism {grouped.groups}", f"channels {plan.channels}", f"key_type {plan.key_type}"]
    present = plan.explicit.column.is_valid().to_pylist()
    texts = [
        text if known else "null" for text, known in zip(hex_of(plan.explicit.column).to_pylist(), present, strict=True)
    ]
    keys = [f"key {group} {text}" for group, text in zip(grouped.explicit.tolist(), texts, strict=True)]
    return ("\n".join([*head, *keys, "end"]) + "\n").encode()
