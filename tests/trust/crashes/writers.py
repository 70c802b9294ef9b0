"""Every command that writes an artefact, each in an older and a newer form for one output."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from adapt.traces.leftovers import leftovers
from adapt.traces.locations.run_folders import MANIFEST
from tests.any_trace import VISITS, two_halves
from tests.conftest import InProcess, Said

WRITERS = {
    "ingest": "ingest x{}.csv --key key --time ts -o out.csv",
    "verdict": "verdict x{}.csv --key key --time ts --channels 3 --engine kafka -o out.csv",
    "generate": "generate zipf --rows 10{} --keys 9 -o out.csv",
    "count": "partition count x{}.trace -o out.csv",
    "build": "partition build x.trace --channels {} -o out.csv",
    "pins aside": "partition build x.trace --channels {} --scheme hybrid --construction level -o out.csv",
    "compare": "partition compare x.trace --channels {} -o out.csv",
    "plan": "partition export x{}.plan --to plan -o out.csv",
    "rekey": "partition export x{}.plan --to rekey -o out.csv",
    "report": "report x{}.trace --html out.csv",
    "check": "check x.trace --channels 2 --limit keys<={} -o out.csv",
    "repartition": "replay repartition x.trace --channels {} --period 5s -o out.csv",
    "flux": "replay flux x.trace --workers {} -o out.csv",
    "elastic": "replay elastic x.trace --workers 1 --pool {} -o out.csv",
    "races": "replay compare x.trace --channels {} --scenario rebuild --seeds 1 --jobs 1 -o out.csv",
    "fit": "replay fit x.trace --network net.toml --planner c-fit --queue {}0 -o out.csv",
    "ordered": "replay ordered x{}.trace --chain visits.toml --workers 1 --backend threads --check 0 --output out.csv",
}
OUT = "out.csv"
FORMS = (2, 3)
"""What stands for `{}`: first in the older form."""


def line_of(name: str, form: int, *, force: bool = False) -> list[str]:
    """A command line."""
    return [*WRITERS[name].format(form).split(), *(["--force"] if force else [])]


def make_inputs(adapt: InProcess) -> None:
    """What the command lines read, in the current folder."""
    for form in FORMS:
        rows = "".join(f"{1_700_000_000 + second},k{second * second % (5 + form)}\n" for second in range(300))
        Path(f"x{form}.csv").write_text(f"ts,key\n{rows}never,k\n")
        adapt.done(*f"generate zipf --rows 10{form} --keys 9 --rate 10 -o x{form}.trace".split())
        adapt.done(*f"partition build x{form}.trace --channels {form} -o x{form}.plan".split())
    shutil.copytree("x3.trace", "x.trace")
    Path("net.toml").write_text(two_halves("1s", 0.001))
    Path("visits.toml").write_text(VISITS)


def parts_of(files: Mapping[str, bytes | None], target: str = OUT) -> dict[str, bytes | None] | None:
    """The artefact among the files of a folder: its own, and the pinned keys that it names; None if it is absent."""
    if target not in files:
        return None
    parts = {path: data for path, data in files.items() if path == target or path.startswith(f"{target}/")}
    whole = files[target]
    if whole is not None and b'"explicit_file"' in whole:
        try:
            side = json.loads(whole)["explicit_file"]["name"]
        except ValueError:
            return parts
        parts[side] = files.get(side)
    return parts


def files_below(folder: Path) -> dict[str, bytes | None]:
    """Content of each file by its path, None for a folder."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def put(files: Mapping[str, bytes | None], folder: Path) -> None:
    """Make a folder of these files."""
    folder.mkdir()
    for path, data in sorted(files.items()):
        if data is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(data)


def content(parts: Mapping[str, bytes | None] | None) -> object:
    """What an artefact says, whenever and wherever it was made."""
    if parts is None:
        return None
    for name in (f"{OUT}/{MANIFEST}", OUT):
        whole = parts.get(name)
        if whole is not None and whole[:1] == b"{":
            return json.loads(whole)["content_hash"] if b'"content_hash"' in whole else whole
    return dict(parts)


def cleaned(folder: Path) -> bool:
    """Whether a clean-up removes all that a run may have left."""
    for left in leftovers(folder):
        left.remove()
    hidden = [each.name for each in folder.iterdir() if each.name.startswith(".") and each.name != ".adapt-counts"]
    return not hidden and not leftovers(folder)


def said_to_be_done(said: Said) -> bool:
    """Whether a command ended well; a limit may have failed."""
    return said.code in (0, 1)
