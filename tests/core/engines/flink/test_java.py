"""What is exported for Flink: Java and Python give every key the same group, and Flink's own class agrees."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.flink.hash import flink_hash, hash_codes
from adapt.core.engines.flink.planned_groups import group_plan
from adapt.core.engines.flink.routes import flink_routes
from adapt.core.engines.names import Engine, Target
from adapt.core.errors import BadInput
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from adapt.traces.deploy.export import export_plan
from adapt.traces.store.manifest import Provenance
from tests.core.engines.any_language.plan_vectors import KEYS, in_hex
from tests.tiers import SOAK

EXAMPLES = Path(__file__).parents[4] / "examples" / "flink"
needs_a_compiler = pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK on PATH")
SUBTASKS = """
import java.nio.file.Path;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
class Subtasks {
  public static void main(String[] given) throws Exception {
    FlinkGroups groups = new FlinkGroups(Path.of(given[0]));
    int most = Integer.parseInt(given[1]);
    for (int number = 0; number < 2000; number++) {
      PlacedKey key = groups.place(number < 4 ? "hot" + number : "user" + number);
      StringBuilder told = new StringBuilder();
      for (int parallelism : new int[] {3, 5, 6, 60}) told.append(
          KeyGroupRangeAssignment.assignKeyToParallelOperator(key, most, parallelism) + " ");
      System.out.println(told);
    }
  }
}
"""


def plan(key_type, base=Scheme.CONSISTENT):
    explicit = {key: row % 5 for row, key in enumerate(KEYS[key_type][::3])}
    groups = 60 if base is Engine.FLINK else None
    return Plan(Scheme.HYBRID, 5, key_type, replicas=50, explicit=explicit, max_parallelism=groups, base=base)


def java(folder, *arguments, asked="", classpath=""):
    classes = folder / "classes"
    sources = [str(path) for path in folder.glob("*.java")]
    options = ["-cp", classpath] if classpath else []
    subprocess.run(["javac", *options, "-d", classes, *sources], check=True, capture_output=True)
    path = os.pathsep.join(filter(None, [str(classes), classpath]))
    told = subprocess.run(["java", "-cp", path, *arguments], input=asked, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return [line.split() for line in told.stdout.splitlines()]


def flink_groups(codes, groups):
    """The group that Flink takes each hash code to."""
    as_longs = pa.array(np.asarray(codes, np.int64) & 0xFFFFFFFF)  # whose hash codes they are
    return flink_hash(as_longs) % groups


def more_keys(key_type):
    match key_type:
        case KeyType.STRING:
            return [f"clé{number}" for number in range(2_000)]
        case KeyType.INT64:
            return range(-999, 999)
        case KeyType.BINARY:
            return [b"\xff%d" % number for number in range(2_000)]


@needs_a_compiler
@pytest.mark.parametrize("key_type", COLUMN_TYPES if SOAK else [KeyType.STRING])
@pytest.mark.parametrize("base", [Scheme.CONSISTENT, *(Engine if SOAK else [Engine.FLINK])])
def test_java_and_python_give_every_key_the_same_group(tmp_path, key_type, base):
    folder, made = tmp_path / "web.flink", plan(key_type, base)
    export_plan(made, Target.FLINK, folder, Provenance("a test"), max_parallelism=60)
    keys = pa.array([*KEYS[key_type], *more_keys(key_type)], made.explicit.column.type)
    asked = "".join(f"{'null' if key is None else key}\n" for key in in_hex(keys))
    groups = group_plan(made, 60).groups_of(keys)
    told = java(folder, "FlinkGroups", str(folder), asked=asked)
    assert [int(group) for group, _ in told] == groups.tolist()
    routes = [int(route) for _, route in told]
    assert flink_groups(routes, 60).tolist() == groups.tolist()
    assert len(set(routes)) >= len(set(hash_codes(keys).tolist()))  # state is found by them: no worse than Java's own


@needs_a_compiler
def test_flink_s_own_class_puts_placed_keys_on_the_subtasks_foreseen(flink_jar, tmp_path):
    folder = tmp_path / "web.flink"
    made = Plan(Scheme.HYBRID, 5, KeyType.STRING, explicit={f"hot{number}": number % 2 for number in range(4)})
    export_plan(made, Target.FLINK, folder, Provenance("a test"), max_parallelism=60)
    (folder / "Subtasks.java").write_text(SUBTASKS)
    told = np.array(java(folder, "Subtasks", str(folder), "60", classpath=str(flink_jar)), np.int32)
    keys = pa.array([f"hot{number}" if number < 4 else f"user{number}" for number in range(2_000)])
    for column, parallelism in enumerate((3, 5, 6, 60)):
        assert told[:, column].tolist() == group_plan(made, 60).subtasks_of(keys, parallelism).tolist()
    assert told[:, 1].tolist() == made.partitioner().channels_of(keys).tolist()


def test_the_table_names_the_subtask_and_route_of_every_group(tmp_path):
    export_plan(plan(KeyType.STRING), Target.FLINK, tmp_path / "one", Provenance("a test"), max_parallelism=60)
    header, *lines = (tmp_path / "one" / "groups.csv").read_text().splitlines()
    assert header.replace('"', "") == "group,subtask,route"
    rows = [tuple(map(int, line.split(","))) for line in lines]
    assert rows == [(group, group * 5 // 60, int(route)) for group, route in enumerate(flink_routes(60))]


@pytest.mark.parametrize("scheme", [Engine.FLINK, Engine.SPARK, Engine.KAFKA])
def test_what_an_engine_does_by_itself_is_refused(tmp_path, scheme):
    with pytest.raises(BadInput, match="own placement"):
        export_plan(Plan(scheme, 4, KeyType.STRING), Target.FLINK, tmp_path / "one", Provenance("a test"))
    assert not Path(tmp_path / "one").exists()


def test_the_readme_prints_the_selector_of_the_example(tmp_path):
    export_plan(plan(KeyType.STRING), Target.FLINK, tmp_path / "visits.flink", Provenance("a test"))
    readme = (tmp_path / "visits.flink" / "README.md").read_text()
    assert f"```java\n{(EXAMPLES / 'ByPlan.java').read_text()}```" in readme
