"""What artefacts measured, read for limits."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.check.check_limits import judge
from adapt.core.check.limit import parse_limit
from adapt.core.elastic.replay import tables as elastic_tables
from adapt.core.errors import BadInput
from adapt.core.fit.replay import tables as fit_tables
from adapt.core.flux.replay import tables as flux_tables
from adapt.core.metrics import Of
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.repartition import periods
from adapt.core.stream import COLUMN_TYPES, KeyType
from adapt.core.table import Kind, Table
from adapt.traces.checking import facts_of, limits_of_file
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.plans import read_plan, write_plan
from adapt.traces.store.runs import write_run

KEYS = {
    KeyType.STRING: st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
    KeyType.INT64: st.none() | st.integers(-(2**63), 2**63 - 1),
    KeyType.BINARY: st.none() | st.binary(max_size=5),
}


@st.composite
def plans(draw):
    key_type = draw(st.sampled_from(COLUMN_TYPES))
    channels = draw(st.integers(1, 5))
    return Plan(
        scheme=Scheme.HYBRID,
        channels=channels,
        key_type=key_type,
        construction=draw(st.sampled_from(list(Construction))),
        explicit=draw(st.dictionaries(KEYS[key_type], st.integers(0, channels - 1), max_size=6)),
        replicas=draw(st.integers(1, 100)),
        metrics={"imbalance": 1.25, "best_possible": 1.0, "m": None},
        parameters={"tolerance": [1.2, 1.2, 1.2], "name": draw(st.text(st.characters(codec="utf-8"), max_size=4))},
    )


@given(plans())
def test_a_plan_that_is_as_it_was_written_is_known_without_building_it(tmp_path_factory, plan):
    path = tmp_path_factory.mktemp("plans") / "x.plan"
    write_plan(plan, path, Provenance("made by hand"))
    facts = facts_of(path, [])
    assert (facts.content_hash, facts.kind) == (read_plan(path).content_hash(), Of.PLAN)
    ((where, value),) = facts.rows_with(parse_limit("imbalance<=1").metric)
    assert (where["channels"], where["construction"], value.low) == (str(plan.channels), plan.construction.value, 1.25)


def test_a_plan_that_was_changed_is_refused_and_one_without_a_hash_is_read(tmp_path):
    path = tmp_path / "x.plan"
    plan = Plan(Scheme.UNIFORM, 3, KeyType.STRING, metrics={"imbalance": 1.25})
    write_plan(plan, path, Provenance("made by hand"))
    text = path.read_text()
    path.write_text(text.replace('"channels": 3', '"channels": 4'))
    with pytest.raises(BadInput, match="it was written"):
        facts_of(path, [])
    text = text.replace('"content_hash"', '"was"').replace('"seal"', '"was_sealed"')
    path.write_text(text.replace('"channels": 3', '"channels": 4'))
    assert facts_of(path, []).rows_with(parse_limit("channels==4").metric)[0][1].low == 4
    path.write_text(text.replace("1.25", '"low"'))
    with pytest.raises(BadInput, match="imbalance must be a number"):
        facts_of(path, [])


@dataclass(frozen=True)
class MadeUp:
    """A run with one row in each table, every number in it `value`."""

    mechanism: str
    columns: tuple
    summary_columns: tuple
    table: str
    value: float = 2.0

    @property
    def parameters(self):
        return {}

    def summary(self):
        return self._of(self.summary_columns)

    def tables(self):
        return {self.table: self._of(self.columns)}

    def _of(self, columns):
        whole = int(self.value)
        cells = {Kind.TEXT: "static", Kind.COUNT: whole, Kind.TIME: whole, Kind.BYTES: whole}
        return Table.from_rows("made up", columns, [[cells.get(column.kind, self.value) for column in columns]])


RUNS = {
    Of.FLUX: MadeUp("flux", flux_tables.CASE_COLUMNS, flux_tables.SUMMARY_COLUMNS, "cases"),
    Of.ELASTIC: MadeUp(
        "elastic",
        (*elastic_tables.CASE_COLUMNS, *elastic_tables.JOIN_COLUMNS),
        flux_tables.SUMMARY_COLUMNS,
        "cases",
    ),
    Of.FIT: MadeUp("fit", fit_tables.PLANNER_COLUMNS, fit_tables.SUMMARY_COLUMNS, "planners"),
    Of.REPARTITION: MadeUp("repartition", periods.PERIOD_COLUMNS, periods.SUMMARY_COLUMNS, "periods"),
}


@pytest.mark.parametrize("kind", RUNS)
def test_the_metrics_of_a_run_are_those_of_its_tables(kind, tmp_path):
    write_run(RUNS[kind], tmp_path / "x.run", Provenance("made by hand"))
    limits = {
        Of.FLUX: [
            "latency_p99<=2s",
            "rows_dropped==2",
            "lag_max<=2",
            "throughput>=2",
            "moves<=2",
            "workers==2",
            "state_moved_bytes<=2B",
        ],
        Of.ELASTIC: [
            "latency_p95<=2s",
            "recall>=100%",
            "rescales==2",
            "idle_time<=2s",
            "dropped_falsely==2",
            "answers==2",
        ],
        Of.FIT: ["latency_p99<=2000ms", "wait_max<=2s", "score>=2 tuples/s", "ticks==2", "queue_drops<=2"],
        Of.REPARTITION: [
            "imbalance[period=2]<=2",
            "imbalance_max<=2",
            "all_keys_moved==2",
            "times_best_possible<=1",
            "rebuilds==2",
        ],
    }[kind]
    asked = [parse_limit(text) for text in limits]
    facts = facts_of(tmp_path / "x.run", asked)
    assert facts.kind is kind
    assert judge(asked, [facts]).passed
    assert not judge([parse_limit(limits[0].replace("<=2", "<=1"))], [facts]).passed


def test_limits_in_a_file_that_is_no_text_are_refused(tmp_path):
    (tmp_path / "limits.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"limits\.toml is no"):
        limits_of_file(tmp_path / "limits.toml")
