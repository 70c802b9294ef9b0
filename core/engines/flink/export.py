"""Export of plans to Flink: key groups and Java classes."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.csv as pc

from adapt.core.engines.any_language.export import READER
from adapt.core.engines.exporter import Bundle, ExportablePlan, File, Program
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
{channels}, each subtask has the keys of its channel. At any other parallelism, subtasks have contiguous ranges of the
same key groups, and a rescale moves whole groups, as in Flink without a plan.

Copy the three Java files into the job (with the job's `package` line, if it has one), and key the stream by a
`PlacedKey`. Its hash code is a route that Flink's own hash maps to the planned key group; two of them are equal if
their keys are, so state is kept per key. Flink serializes it as a POJO.

```java
{selector}```

```java
env.setMaxParallelism({groups});
visits.keyBy(new ByPlan()).process(...);
```

Keys are `String`, `Long` or `byte[]`, as in the plan. State is keyed by the route, so a savepoint can only be restored
with the same plan. To try it, pass keys in hex; it prints key group and route:

    javac -d classes {folder}/*.java
    printf '%s\\n' 616263 | java -cp classes FlinkGroups {folder}
"""


def flink_bundle(plan: ExportablePlan, max_parallelism: int | None) -> Bundle:
    """Key groups, routes, and the program that routes each key."""
    grouped = group_plan(plan, max_parallelism)
    if isinstance(plan.scheme, Engine):
        raise BadInput(
            f"scheme {plan.scheme} is an engine's own placement; build a plan of another scheme, e.g. hybrid"
        )
    routes = flink_routes(grouped.groups).tolist()
    numbers = pa.array(range(grouped.groups), pa.int32())
    subtasks = channels_of_groups(numbers.to_numpy(), plan.channels, grouped.groups)
    table = pa.table({"group": numbers, "subtask": pa.array(subtasks), "route": pa.array(routes, pa.int32())})
    packed = pa.BufferOutputStream()
    pc.write_csv(table, packed)
    files = {
        GROUPS: File(_text(grouped), "key groups of the pinned keys, for Java"),
        TABLE: File(packed.getvalue().to_pybytes(), "each key group with its subtask and smallest route"),
    }
    programs = {
        READER.file: replace(READER, about="reader of plan.txt"),
        "FlinkGroups.java": Program("computes the key group and route of a key", __package__, "FlinkGroups.java"),
        "PlacedKey.java": Program("a key that Flink assigns to its group", __package__, "PlacedKey.java"),
    }
    use = (
        _USE.replace("{selector}", _SELECTOR)
        .replace("{groups}", str(grouped.groups))
        .replace("{channels}", str(plan.channels))
    )
    return Bundle(files, use, programs)


def _text(grouped: GroupPlan) -> bytes:
    """ASCII lines of name, space, value; a pinned key is `key GROUP HEX`, with null for the null key."""
    plan = grouped.plan
    head = [
        HEADER,
        *(["base flink"] if plan.hashing is Engine.FLINK else []),
        f"max_parallelism {grouped.groups}",
        f"channels {plan.channels}",
        f"key_type {plan.key_type}",
    ]
    present = plan.explicit.column.is_valid().to_pylist()
    texts = [
        text if known else "null" for text, known in zip(hex_of(plan.explicit.column).to_pylist(), present, strict=True)
    ]
    keys = [f"key {group} {text}" for group, text in zip(grouped.explicit.tolist(), texts, strict=True)]
    return ("\n".join([*head, *keys, "end"]) + "\n").encode()
