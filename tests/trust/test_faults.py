"""Faults put into the code on purpose: the test that watches over what each breaks must fail."""

import os
import subprocess
import sys
import tomllib

import pytest

from tests.tiers import soak
from tests.trust.promises import HERE

ROOT = HERE.parent.parent
FAULTS = tomllib.loads((HERE / "faults.toml").read_text())


def package_with(fault, folder):
    """The package by links, but for a copy of one file, which has the fault."""
    source, here = (ROOT / fault["file"]).read_text(), folder / "adapt"
    assert source.count(fault["old"]) == 1, fault["file"]
    here.mkdir()
    for part in (ROOT / "api").iterdir():
        (here / part.name).symlink_to(part)
    for part in ("cli", "core", "traces"):
        (here / part).symlink_to(ROOT / part)
    for part in fault["file"].removeprefix("api/").split("/"):
        linked = here / part
        real = linked.resolve()
        linked.unlink()
        if real.is_dir():
            linked.mkdir()
            for each in real.iterdir():
                if each.name != "__pycache__":
                    (linked / each.name).symlink_to(each)
        here = linked
    here.write_text(source.replace(fault["old"], fault["new"]))


@soak
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name, tmp_path, promise):
    fault = FAULTS[name]
    package_with(fault, tmp_path)
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"tests/{fault['test']}"]
    alone = {name: value for name, value in os.environ.items() if name != "ADAPT_SOAK" and name[:6] != "PYTEST"}
    done = subprocess.run(
        line, cwd=ROOT, env={**alone, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert f"FAILED tests/{fault['test']}" in done.stdout, done.stdout[-2000:]
    promise("faults").checked(1)
