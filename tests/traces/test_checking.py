"""Checks and lint of traces, named keys, and what cannot be read."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.check.check_limits import judge
from adapt.core.check.limit import parse_limit
from adapt.core.elastic.replay import tables as elastic_tables
from adapt.core.errors import BadInput
from adapt.core.fit.replay import tables as fit_tables
from adapt.core.flux.replay import tables as flux_tables
from adapt.core.lint.evidence import LINT
from adapt.core.lint.findings import RULES
from adapt.core.metrics import Of
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.named_keys import NamedKey, Pin
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.repartition import periods
from adapt.core.stream import COLUMN_TYPES, KeyType
from adapt.core.table import Kind, Table
from adapt.traces.checking import facts_of, limits_of_file
from adapt.traces.lint import lint
from adapt.traces.named_keys import read_pins
from adapt.traces.store.manifest import Manifest, Provenance, read_manifest, write_manifest
from adapt.traces.store.plans import read_plan, write_plan
from adapt.traces.store.runs import write_run
from tests.core.lint.synthetic import DAY_US, clean, findings, profile
from tests.traces.small_traces import write_trace

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


def rows() -> dict:
    """A clean stream of a day, but for three rows dated wrong and many without a key."""
    trace = clean(1, rows=5000, days=1.0, exponent=0.3)
    trace["ts"][-3:] += 9 * DAY_US
    trace["key"][::10] = "unknown"
    return trace


def written(folder, *, with_evidence: bool):
    """Those rows as a trace, as ingest leaves it or as it was left before there was a lint."""
    made = rows()
    write_trace(folder, {**made, "key": list(made["key"]), "stream": list(made["stream"])})
    manifest = read_manifest(folder)
    told = profile(made, blocks=1)
    if not with_evidence:
        del told[LINT]
    summary = {**manifest.summary, "profile": told}
    write_manifest(folder, Manifest("trace", manifest.content_hash, manifest.made, manifest.files, summary))
    return folder


def test_a_trace_without_evidence_is_read_and_judged_the_same(tmp_path):
    carried = lint(written(tmp_path / "new.trace", with_evidence=True))
    read = lint(written(tmp_path / "old.trace", with_evidence=False))
    assert (carried.knows_source, read.knows_source) == (True, False)
    assert {finding.id for finding in read.findings} == {"outlier-dates", "default-key", "short-span"}
    strip = [{**finding.as_data(), "effect": None} for finding in carried.findings if finding.id != "source-order"]
    assert strip == [{**finding.as_data(), "effect": None} for finding in read.findings]


def test_the_evidence_is_not_needed_where_it_is_carried(tmp_path):
    folder = written(tmp_path / "new.trace", with_evidence=True)
    for part in folder.glob("*.parquet"):
        part.write_bytes(bytes(part.stat().st_size))
    assert {finding.id for finding in lint(folder).findings} == set(findings(rows()))


def test_a_missing_trace_is_refused(tmp_path):
    with pytest.raises(BadInput, match="does not exist"):
        lint(tmp_path / "none.trace")


def test_the_command_prints_findings_in_every_format_and_fits_80_columns(adapt, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = written(tmp_path / "t.trace", with_evidence=True)
    said = adapt.done("lint", folder)
    assert max(map(len, said.out.splitlines())) <= 80
    assert "…" not in said.out
    assert f"{len(RULES)} rules checked" in said.err
    told = adapt.json("lint", folder)
    assert told["schema"] == "adapt.lint/1"
    assert {found["id"] for found in told["findings"]} >= {"outlier-dates", "default-key"}
    assert next(found for found in told["findings"] if found["id"] == "outlier-dates")["figures"]["rows"] == 3
    assert adapt.done("lint", folder, "--format", "csv").out.startswith("severity,finding,evidence,effect,fix\n")
    assert "does not exist" in adapt.refused(3, "lint", tmp_path / "none.trace")


@pytest.mark.parametrize("head", ["", "key,channel\n", "Key, Channel\n\n", "\ufeffkey,channel\n"])
def test_pins_are_read_with_their_lines(tmp_path, head):
    path = tmp_path / "pins.csv"
    path.write_text(f'{head}a,3\n\n"b,""c""", 0\na,3\n,1\n')
    first = head.count("\n") + 1
    assert read_pins(path) == [
        Pin(NamedKey("a", f"{path} line {first}"), 3),
        Pin(NamedKey('b,"c"', f"{path} line {first + 2}"), 0),
        Pin(NamedKey("", f"{path} line {first + 4}"), 1),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,1\nb\n", "line 2: expected 2 fields: key, worker (got 1)"),
        ("a,1\nb,1,2\n", "line 2: expected 2 fields: key, worker (got 3)"),
        ("key,channel\na,x\n", "line 2: the worker must be a whole number, at least 0 (got 'x')"),
        ("a,-1\n", "line 1: the worker must be a whole number, at least 0 (got '-1')"),
        ("a,1.5\n", "line 1: the worker must be a whole number, at least 0 (got '1.5')"),
        ("a,1\nb,2\na,2\n", "line 3: key 'a' is pinned to worker 2, but line 1 pins it to 1; remove one"),
        ('a,1\n"b,2\n', "line 2"),
        ("", "has no pins; write one key,channel per line"),
        ("key,channel\n", "has no pins"),
    ],
)
def test_what_is_no_pin_is_refused_with_its_line(tmp_path, text, told):
    path = tmp_path / "pins.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as refusal:
        read_pins(path)
    assert str(refusal.value).startswith(f"{path}")
    assert told in str(refusal.value)


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """A folder whose files cannot even be looked at, whoever runs the test."""
    folder = tmp_path / "locked"
    folder.mkdir()
    looked = os.stat

    def stat(path, *arguments, **options):
        if str(path).startswith(f"{folder}{os.sep}"):
            raise PermissionError(13, "Permission denied", str(path))
        return looked(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", stat)
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "report {}/x.trace",
        "ingest {}/c.csv --key k -o {}.trace",
        "ingest {}/*.csv --key k -o {}.trace",
        "partition count {}/x.trace",
        "partition build {}/c.csv --channels 2",
        "partition compare {}/c.csv --channels 2",
        "partition route {}/p.plan",
        "replay repartition {}/x.trace --channels 2",
    ],
)
def test_a_locked_folder_is_bad_input(adapt, locked, line):
    (locked / "c.csv").touch()
    told = adapt.refused(3, *line.format(locked, locked).split())
    assert "Permission denied" in told
    assert str(locked) in told


def test_a_folder_that_cannot_be_listed_is_bad_input(adapt, tmp_path, monkeypatch):
    folder = tmp_path / "unlisted"
    folder.mkdir()
    listed = Path.iterdir

    def refuse(path):
        if path == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert f"{folder}: cannot be read: Permission denied" in adapt.refused(
        3, "ingest", folder, "--key", "k", "-o", tmp_path / "x.trace"
    )
