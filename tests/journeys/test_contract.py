"""Journeys of the docs: the contract, old artefacts, Figure 1, lint, the notebook."""

import contextlib
import json
import os
import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree as ET

import nbformat
import pytest
from nbclient import NotebookClient

from adapt.core.units.seals import as_json, sealed
from adapt.traces.demonstration import PACKAGE
from adapt.traces.read_errors import note_unsealed
from adapt.traces.store.manifest import MANIFEST

PAGE = Path(__file__).parent.parent.parent / "docs" / "contract.md"


def blocks():
    """The file of limits, and the commands that go with it."""
    limits, _, commands, *_ = re.findall(r"^```[a-z]+\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return limits, [shlex.split(line)[1:] for line in commands.splitlines()]


def sample(users):
    return "ts,user\n" + "".join(f"17{at:08d},u{at % users}\n" for at in range(4_000))


@pytest.mark.usefixtures("spark")
def test_the_contract_holds_for_today_and_fails_a_worse_key(adapt, tmp_path, monkeypatch):
    limits, (ingest, build, check) = blocks()
    assert (ingest[0], build[:2], check[0]) == ("ingest", ["partition", "build"], "check")
    monkeypatch.chdir(tmp_path)
    Path("skew").mkdir()
    Path("skew/limits.toml").write_text(limits)
    Path("skew/sample.csv").write_text(sample(500))
    adapt.done(*ingest)
    adapt.done(*build)
    shutil.copy("now.plan", "skew/main.plan")
    assert "All 3 limits hold." in adapt.done(*check).out
    assert ET.parse("skew.xml").getroot().get("failures") == "0"

    Path("skew/sample.csv").write_text(sample(4))
    adapt.done(*ingest, "--force")
    adapt.done(*build, "--force")
    said = adapt(*check, "--force")
    assert (said.code, "3 of 3 limits failed." in said.out) == (1, True)
    assert ET.parse("skew.xml").getroot().get("failures") == "3"

    trace = ["check", "sample.trace", "--engine", "flink"]
    profile_only = ["--limit", "null_keys == 0", "--limit", "rejected == 0", "--limit", "rows >= 4000"]
    adapt.done(*trace, *profile_only)
    said = adapt(*trace, "--limit", "imbalance <= 2", "--limit", "top_share <= 25%", "--limit", "useful_workers >= 4")
    assert (said.code, "1 of 3 limits failed." in said.out) == (1, True)
    assert adapt(*trace, "--limit", "imbalance", "--baseline", "skew/main.plan").code == 1


SAYS_SO = [
    "verdict old.trace --channels 4",
    "partition build old.trace --channels 4 --from old.plan",
    "partition compare old.trace --channels 4",
    "partition evaluate old.trace old.plan",
    "replay repartition old.trace --channels 4",
]
"""Place keys as an engine does, which depends on their type."""

READS = [
    "partition diff old.trace old.plan old.plan",
    "partition export old.plan --to plan -o export",
    "report old.trace old.plan --verify",
    "lint old.trace",
    "check old.trace --limit keys<=300",
    "advise salts old.trace --parallelism 3",
    "replay flux old.trace --workers 4 --plan old.plan",
]


@pytest.fixture
def old(adapt, tmp_path):
    """A trace of format 1 and a plan without a seal."""
    with contextlib.chdir(tmp_path):
        adapt.done(*"generate zipf --rows 3000 --keys 200 --key-type int64 -o old.trace".split())
        adapt.done(*"partition build old.trace --channels 4 -o old.plan".split())
        path = tmp_path / "old.trace" / MANIFEST
        data = json.loads(path.read_bytes()) | {"format": 1}
        del data["summary"]["key_columns"], data["seal"]
        path.write_bytes(as_json(sealed(data)))
        plan = tmp_path / "old.plan"
        plan.write_bytes(
            as_json({name: value for name, value in json.loads(plan.read_bytes()).items() if name != "seal"})
        )
        yield tmp_path


def test_old_traces_and_plans_read_and_say_what_they_lack(adapt, old):
    first_format = "old.trace is of the first format, which did not keep the type of keys: spark places them as int64"
    for line in SAYS_SO:
        assert first_format in adapt.done(*line.split()).err, line
    for line in READS:
        note_unsealed.cache_clear()
        assert ("old.plan has no seal" in adapt.done(*line.split()).err) is ("old.plan" in line), line


COUNTS = {"X": 5, "Z": 3, "V": 2, "R": 1, "U": 4, "Y": 3, "W": 3, "L": 1}
BALANCING = {  # the keys of each channel before and after a third one is added
    "network": (("XZVR", "UYWL"), ("XZ", "UY", "WVRL")),
    "processing": (("XZV", "UYWLR"), ("X", "UY", "WZVRL")),
    "both": (("XZV", "UYWLR"), ("XRL", "UY", "WZV")),
}


def plan(channels):
    """A plan that places every key explicitly, as anybody may write one."""
    explicit = {key: channel for channel, keys in enumerate(channels) for key in keys}
    return {
        "schema": "adapt.plan/1",
        "scheme": "hybrid",
        "channels": len(channels),
        "key_type": "string",
        "hash": {"name": "murmur3", "seed": 0},
        "explicit": explicit,
    }


@pytest.mark.parametrize(
    ("balanced", "before", "after", "moved"),
    [
        ("network", (11 / 11, 39 / 35), (8 / 7, 34 / 15), 7),
        ("processing", (12 / 10, 38 / 36), (10 / 5, 25 / 24), 10),
        ("both", (12 / 10, 38 / 36), (8 / 7, 27 / 22), 10),
    ],
)
def test_the_balances_and_the_bill(adapt, tmp_path, monkeypatch, balanced, before, after, moved):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fig1.csv").write_text("".join(f"{key},{count}\n" for key, count in COUNTS.items()))
    for name, channels in zip(("P2", "P3"), BALANCING[balanced], strict=True):
        (tmp_path / name).write_text(json.dumps(plan(channels)))
    told = adapt.json(*"partition diff fig1.csv P2 P3 --resources LQL".split())
    assert (told["before"]["r_n"], told["before"]["r_c"]) == pytest.approx(before)
    assert (told["after"]["r_n"], told["after"]["r_c"]) == pytest.approx(after)
    assert told["state_moved"] == moved
    assert sum(map(sum, told["state_moved_between"])) == moved


NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


def test_it_is_kept_without_outputs():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_it_runs_and_every_result_shows_itself(real_traces, tmp_path):
    if find_spec(PACKAGE) is None:
        os.environ["ADAPT_DATA"] = str(real_traces("flights").parent)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [
        output["data"].get("text/html", output["data"]["text/plain"])
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert len(shown) == sum(cell.cell_type == "code" for cell in notebook.cells)
    assert shown[0] == "336776"
    assert all(re.match(r"<(table|p|div)>", each) for each in shown[1:])
    assert "Pin " in shown[2]
    assert "hybrid" in shown[3]
