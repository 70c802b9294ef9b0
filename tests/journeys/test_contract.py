"""The contract of docs/contract.md, run as it stands: it passes today, and fails a worse key."""

import re
import shlex
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

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
