"""What shells complete: commands, options and values, quickly, and in a real bash."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

from adapt.core.engines.names import CURRENT_SCHEMES, SCHEMES_BY_NAME
from adapt.core.fit.network.names import DropPlanner
from adapt.core.mechanisms.scenarios import SCENARIOS
from adapt.core.metrics import METRICS
from adapt.core.partitioning.splitting.names import PlannedSplitting, Splitting

PROGRAM = """
import sys
import adapt.cli.main
code = adapt.cli.main.run([])
print(code, *[name for name in ("pyspark", "pyarrow", "numba", "pandas") if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture
def completed(monkeypatch, capsys):
    """What bash is offered for a line, the last word of which is being typed."""
    from adapt.cli.main import run

    def offered(line):
        words = shlex.split(line) + ([""] if line.endswith(" ") else [])
        monkeypatch.setenv("_ADAPT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        capsys.readouterr()
        assert run([]) == 0
        return capsys.readouterr().out.split()

    return offered


def test_commands_are_completed(completed):
    assert {"ingest", "partition", "replay", "report", "check", "demo"} <= set(completed("adapt "))
    assert {"repartition", "flux", "elastic", "fit", "ordered", "compare"} == set(completed("adapt replay "))
    assert completed("adapt partition ev") == ["evaluate"]


def test_options_are_completed(completed):
    assert "--scheme" in completed("adapt partition build --s")
    assert completed("adapt replay ordered --heur") == ["--heuristic"]


def begun(names, start=""):
    return [str(name) for name in names if name.startswith(start)]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("adapt partition build --scheme ", begun(SCHEMES_BY_NAME)),
        ("adapt partition build --scheme h", ["hybrid"]),
        ("adapt partition build --engine ", ["max-parallelism=", "replicas=", "hash=", *begun(CURRENT_SCHEMES)]),
        ("adapt partition build --engine consistent:r", ["consistent:replicas="]),
        ("adapt partition compare --scheme ", begun([*SCHEMES_BY_NAME, *PlannedSplitting, *Splitting])),
        ("adapt report --format ", ["table", "json", "csv", "md"]),
        ("adapt replay fit --planner ", begun(DropPlanner)),
        ("adapt replay flux --network tuple-size=1B,lat", ["tuple-size=1B,latency="]),
        ("adapt replay flux --engine fl", ["flux", "flink"]),
        ("adapt replay fit --planner exact,d-", ["exact,d-fit", "exact,d-fit-cuts"]),
        ("adapt replay compare --scenario flux-", begun((one.name for one in SCENARIOS), "flux-")),
        ("adapt check --limit imb", begun(METRICS, "imb")),
        ("adapt check --engine fl", ["flink", "flink-sql"]),
    ],
)
def test_values_are_completed(completed, line, values):
    assert completed(line) == values


def test_columns_of_the_source_are_completed_with_their_path(completed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"event": {"user": {"id": 1}, "a b": 2}, "ts": 3}\n{"event": {"kind": "x"}}\n')
    (tmp_path / "b.csv").write_text("time,user\n1,ann\n")
    assert completed("adapt ingest a.jsonl --key ev") == ["event.user.id", *"event.`a b`".split(), "event.kind"]
    assert completed("adapt ingest a.jsonl --time 1 --cost t") == ["ts"]
    assert completed("adapt verdict b.csv --key ") == ["time", "user"]
    assert completed("adapt ingest none.csv --key ") == completed("adapt ingest --key ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script(monkeypatch, capsys, shell):
    from adapt.cli.main import run

    monkeypatch.setenv("_ADAPT_COMPLETE", f"source_{shell}")
    assert run([]) == 0
    assert f"complete_{shell}" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["adapt partition build --scheme h", "adapt check --limit imb"])
def test_completing_loads_nothing_heavy(words):
    asked = {"_ADAPT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    said = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | asked, capture_output=True, text=True)
    assert said.stdout
    assert said.stderr.split() == ["0"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_completes(tmp_path):
    (tmp_path / "adapt").write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from adapt.cli.main import main; main()" "$@"\n'
    )
    (tmp_path / "adapt").chmod(0o755)
    script = (
        'eval "$(_ADAPT_COMPLETE=source_bash adapt)"\n'
        "COMP_WORDS=(adapt partition build --scheme h); COMP_CWORD=4\n"
        '_adapt_completion adapt; echo "${COMPREPLY[@]}"'
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    said = subprocess.run(["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert said.stdout == "hybrid\n", said.stderr
