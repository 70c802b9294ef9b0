"""Every command is a function of `adapt`, which returns what the command prints."""

import inspect
from functools import partial

import pandas as pd
import pyarrow as pa
import pytest

import adapt
from adapt.calling import COMMANDS
from adapt.cli.main import command_tree, run
from adapt.traces.store.plans import read_plan, read_plan_made
from tests.contracts.test_commands import leaves
from tests.core.own_policies.policies import Calm
from tests.docs.pages import blocks, text_of
from tools.functions import STUB, stub

OTHERS = {"partition route", "demo"}
"""Commands that print as they work: `adapt.route` returns channels, and the notebook is the demonstration."""


@pytest.fixture(scope="module")
def trace():
    """A small trace that nobody keeps."""
    return adapt.generate("zipf", rows=3000, keys=200, exponent=1.2)


def test_every_command_has_a_function():
    assert {*COMMANDS.values(), *OTHERS} == leaves(command_tree()).keys()


def test_the_page_shows_every_command_beside_its_function():
    rows = [line.split("|") for line in text_of("docs/python.md").splitlines() if line.startswith("| `adapt ")]
    shown = {row[1].strip(" `").removeprefix("adapt "): row[2] for row in rows}
    assert shown.keys() == leaves(command_tree()).keys()
    assert all(f"`adapt.{name}(" in shown[words] for name, words in COMMANDS.items())


@pytest.mark.usefixtures("spark")
def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("docs/python.md"):
        if block.kind == "python":
            exec(block.text, names)
    assert len(names["channels"]) == 3


def test_the_signatures_for_type_checkers_are_those_of_the_commands():
    assert STUB.read_text() == stub(), "run `python -m tools.functions`"


def test_a_function_shows_its_options_and_what_they_mean():
    assert [*inspect.signature(adapt.verdict).parameters][:4] == ["source", "channels", "key", "engine"]
    assert "channels: Number of workers." in inspect.getdoc(adapt.verdict)
    assert adapt.replay.elastic.__qualname__ == "replay.elastic"


def test_a_function_gives_what_its_command_gives_and_prints_nothing(trace, tmp_path, capfd):
    words = f"partition build {trace.trace.path} --channels 4 --max-pins 9 -o {tmp_path}/a.plan"
    assert run(words.split()) == 0
    assert "wrote" in capfd.readouterr().err
    plan = adapt.build(trace, channels=4, max_pins=9, out=tmp_path / "b.plan")
    assert read_plan(tmp_path / "a.plan") == read_plan(tmp_path / "b.plan") == plan
    assert read_plan_made(tmp_path / "b.plan")["command"].startswith("adapt partition build --channels=4 --out=")
    assert capfd.readouterr() == ("", "")


def test_results_go_where_commands_take_paths(trace):
    counted = adapt.count(trace)
    plan = adapt.build(counted, channels=4)
    wider = adapt.build(trace.trace, channels=5, from_=plan)
    assert wider.parent == plan.content_hash()
    assert adapt.diff(counted.frequencies, plan, wider).to_pandas()["metric"][0] == "imbalance"
    assert adapt.check(plan, wider, limit=["imbalance <= 9", "pinned_keys <= 900"]).passed
    assert adapt.evaluate(trace, [plan, wider]).to_arrow()["plan"].to_pylist()[1:] == ["plan-1.plan", "plan-2.plan"]
    assert adapt.report(trace, plan).to_pandas().shape[0] == 1


def test_counted_keys_come_as_a_frame_too():
    counts = pd.DataFrame({"key": ["a", "b", "a", None], "count": [3, 4, 5, 1]})
    compared = adapt.compare(counts, channels=[1, 2], scheme="uniform")
    assert compared.to_pandas()["channels"].tolist() == [1, 2, 1, 2]
    assert adapt.build(pa.table(counts), channels=2).key_type == "string"


def test_counted_integers_keep_their_width():
    # pmod(hash(k), 4) of Spark: 3 for each of them as INT, and for two of them as BIGINT.
    for kind, imbalance in ((pa.int32(), 4.0), (pa.int64(), 2.0)):
        counts = pa.table({"key": pa.array([1, 3, 7, 11], kind), "count": [100] * 4})
        today = adapt.compare(counts, channels=4, scheme="uniform", engine="spark").to_pandas()
        assert today["imbalance"].max() == imbalance, today


def test_keys_are_routed_as_they_come(trace):
    plan = adapt.build(trace, channels=4)
    keys = trace.to_arrow()["key"]
    channels = adapt.route(plan, keys)
    assert channels.tolist() == plan.partitioner().channels_of(keys).tolist()
    for others in (keys.to_pylist(), keys.to_pandas(), keys.cast(pa.string_view()), keys.dictionary_encode()):
        assert (adapt.route(plan, others) == channels).all()


def test_a_class_does_for_its_name(trace):
    run = adapt.replay.flux(trace, workers=2, speedup=1000, policy=partial(Calm, threshold=0.3))
    (own,) = run.parameters["own_policies"]
    assert own == {
        "module": "tests.core.own_policies.policies",
        "name": "Calm",
        "options": {"threshold": 0.3},
        "source": own["source"],
    }


REFUSED = {
    "no such option": (lambda it: adapt.build(it, chanels=3), "did you mean 'channels'"),
    "no number": (lambda it: adapt.build(it, channels="x"), "--channels must be a whole number (got 'x')"),
    "missing": (lambda it: adapt.build(it), "missing option '--channels'"),
    "out of range": (lambda it: adapt.build(it, channels=0), "--channels must be from 1 to 1,000,000 (got 0)"),
    "no choice": (lambda it: adapt.build(it, channels=2, engine="kafak"), "did you mean 'kafka'"),
    "no artefact": (lambda it: adapt.lint({"a": 1}), "a dict is neither a path, a frame nor a result of adapt"),
    "no trace": (
        lambda it: adapt.lint(it.to_arrow()),
        "pyarrow.Table: no column is the count of a key; name it key, count or time",
    ),
    "no count": (lambda it: adapt.compare(pd.DataFrame({"key": ["a"]}), channels=2), "no column is the count of a key"),
    "negative": (
        lambda it: adapt.compare(pd.DataFrame({"key": ["a"], "count": [-1]}), channels=2),
        "at least 0 (got '-1')",
    ),
    "keys of another type": (lambda it: adapt.route(adapt.build(it, channels=2), [1, 2]), "keys must be string"),
    "keys of no type": (lambda it: adapt.route(adapt.build(it, channels=2), [1.5]), "text, whole numbers or bytes"),
    "no key": (lambda it: adapt.ingest(pd.DataFrame({"ts": [1], "user": ["a"]})), "--key is required"),
    "no file": (lambda it: adapt.read_trace("nowhere.trace"), "nowhere.trace does not exist"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_in_the_words_of_the_command(trace, case):
    call, sentence = REFUSED[case]
    with pytest.raises(adapt.AdaptError) as raised:
        call(trace)
    assert sentence in str(raised.value)


def test_results_show_themselves_in_a_console(trace):
    plan = adapt.build(trace, channels=4)
    assert repr(trace).startswith("Trace\ntrace ")
    assert repr(trace.trace).startswith("Trace(/")
    assert repr(plan).startswith("Plan(hybrid over spark, 4 workers")
    assert repr(adapt.count(trace).frequencies).startswith("Frequencies(182 keys")
    shown = repr(adapt.verdict(trace, channels=4, force=True)).splitlines()
    assert "(4 workers): imbalance" in shown[0]
    assert "More in displayed(): Hot keys" in shown[-1]
    assert max(map(len, repr(adapt.compare(trace, channels=4)).splitlines())) <= 100


@pytest.mark.usefixtures("spark")
def test_functions_take_uris_where_they_take_paths(bucket):
    place = str(bucket).rstrip("/")
    rows = pd.DataFrame({"ts": range(600), "key": [f"k{at % 7}" for at in range(600)]})
    ingested = adapt.ingest(rows, key="key", time="ts", time_format="epoch_s", out=f"{place}/web.trace")
    trace = adapt.read_trace(f"{place}/web.trace")
    assert (trace.rows, trace.to_arrow()) == (600, ingested.trace.to_arrow())
    plan = adapt.build(trace, channels=2, out=f"{place}/web.plan")
    assert adapt.read_plan(f"{place}/web.plan") == adapt.read_plan(bucket / "web.plan") == plan
    assert adapt.route(f"{place}/web.plan", ["k1"]).tolist() == [adapt.Router.load(f"{place}/web.plan").partition("k1")]
    adapt.write_splitter(adapt.Splitter(2), f"{place}/web.splitter")
    assert adapt.read_splitter(f"{place}/web.splitter").plan == adapt.Splitter(2).plan
    adapt.report(trace, f"{place}/web.plan", html=f"{place}/web.html")
    assert (bucket / "web.html").is_file()
