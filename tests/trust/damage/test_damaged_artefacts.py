"""Damage anywhere in an artefact is refused in one sentence, or changes nothing of what is printed."""

# ruff: noqa: F811

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapt.cli.main import run
from adapt.core.errors import BadInput
from adapt.traces.block_cache import CACHE
from adapt.traces.deploy.splitters import read_splitter
from tests.tiers import SEED, SOAK
from tests.traces.store.conftest import artefacts  # noqa: F401
from tests.traces.store.test_damage import _splitter

READERS = {
    "a.trace": (
        "report a.trace --all --format json",
        "partition count a.trace --method exact --all --format json",
        "partition evaluate a.trace a.plan --format json",
        "replay repartition a.trace --channels 3 --period 100s --format json",
    ),
    "a.freq": ("partition build a.freq --channels 3 --format json", "report a.freq --all --format json"),
    "a.plans": ("report a.plans --all --format json", "check a.plans --limit imbalance<=9 --format json"),
    "a.plan": ("report a.plan --format json", "partition diff a.trace a.plan b.plan --format json"),
    "a.run": ("report a.run --all --format json", "check a.run --limit imbalance<=9 --format json"),
    "a.drops": ("report a.drops --all --format json",),
    "a.cmp": ("report a.cmp --all --format json", "check a.cmp --limit latency_p99<=1h --format json"),
}
"""Commands that read each artefact."""

DAMAGES = 60 if SOAK else 8
"""Of each artefact."""


OTHERS = (
    "partition build a.trace --channels 3 --max-pins 2 -o b.plan",
    "generate zipf --rows 600 --keys 20 --rate 10 -o other/a.trace",
    "partition count other/a.trace -o other/a.freq",
    "partition compare other/a.trace --channels 3 -o other/a.plans",
    "partition build other/a.trace --channels 3 -o other/a.plan",
    "replay repartition other/a.trace --channels 3 --period 20s -o other/a.run",
    "replay fit other/a.trace --network n.toml --planner c-fit --plans other/a.drops",
    "replay compare other/a.trace --channels 3 --scenario static-uniform --jobs 1 --seeds 2 -o other/a.cmp",
)


@pytest.fixture(scope="module")
def stock(artefacts, tmp_path_factory) -> Path:
    """An artefact of each kind, and others of the same kinds below `other`."""
    folder = shutil.copytree(artefacts, tmp_path_factory.mktemp("stock") / "made")
    (folder / "other").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in OTHERS:
            assert run(line.split()) == 0, line
    return folder


@pytest.fixture
def made(stock, tmp_path, monkeypatch) -> Path:
    """A copy of all of them."""
    folder = shutil.copytree(stock, tmp_path / "made")
    monkeypatch.chdir(folder)
    return folder


def damaged(whole: bytes, other: bytes, chance: random.Random) -> tuple[str, bytes]:
    """A file after one accident, and its name."""
    at, until = sorted(chance.sample(range(len(whole) + 1), 2)) if len(whole) > 1 else (0, len(whole))
    flipped, changed = bytearray(whole), bytearray(whole)
    flipped[at] ^= 1 << chance.randrange(8)
    digit = chance.choice([each for each, byte in enumerate(whole) if chr(byte).isdigit()] or [at])
    changed[digit] = ord("0") + (whole[digit] + 1) % 10
    if chance.random() < 0.3:
        return f"another digit at {digit}", bytes(changed)
    kinds = {
        "a flipped bit": bytes(flipped),
        "zeros": whole[:at] + bytes(until - at) + whole[until:],
        "a part left out": whole[:at] + whole[until:],
        "a part of another": whole[:at] + other[at:until] + whole[until:],
        "cut off": whole[:at],
        "more at its end": whole + whole[at:until],
        "another": other,
    }
    kind = chance.choice(list(kinds))
    return f"{kind} at {at} to {until} of {len(whole)}", kinds[kind]


def files_of(artefact: Path) -> list[Path]:
    return sorted(each for each in (artefact, *artefact.rglob("*")) if each.is_file())


def other_of(file: Path, chance: random.Random) -> Path:
    """The same file of another artefact, or another file of this one."""
    twin = "other" / file
    return twin if twin.exists() and chance.random() < 0.7 else chance.choice(files_of(Path(file.parts[0])))


@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_refused_or_harmless(adapt, made, promise, kind):
    expected = {line: printed(adapt, line) for line in READERS[kind]}
    chance = random.Random(f"{SEED} {kind}")
    seen = {said[0] for said in expected.values()}
    assert seen <= {0, 1}
    for _ in range(DAMAGES):
        file = chance.choice(files_of(Path(kind)))
        whole = file.read_bytes()
        story, bytes_now = damaged(whole, other_of(file, chance).read_bytes(), chance)
        file.write_bytes(bytes_now)
        taken = [each.read_bytes() for each in files_of(Path(kind))]
        for line in () if taken == [each.read_bytes() for each in files_of("other" / Path(kind))] else READERS[kind]:
            said = printed(adapt, line)
            told = f"seed {SEED}: {file}: {story}: {line}: {said}"
            assert said == expected[line] or is_one_sentence(*said), told
        file.write_bytes(whole)
    promise("damage").checked(DAMAGES * len(READERS[kind]))


def printed(adapt, line: str) -> tuple[int, str, str]:
    """What a command says, without results that an earlier one kept."""
    shutil.rmtree(CACHE, ignore_errors=True)
    said = adapt(*line.split())
    return said.code, re.sub(r'"\w*build_s": .*', "", said.out), said.err if said.code > 1 else ""


def is_one_sentence(code: int, out: str, err: str) -> bool:
    """A refusal of what was read, after what is said of its source."""
    return code == 3 and not out and err.splitlines()[-1].startswith("adapt: ") and "Traceback" not in err


def test_a_damaged_splitter_is_refused_or_the_same(tmp_path, promise):
    splitter, chance = _splitter(), random.Random(SEED)
    whole = splitter.to_text()
    other = whole.replace(b"k1", b"k2")
    file = tmp_path / "saved"
    cases = list(accidents(whole, other, chance))
    for story, data in cases:
        file.write_bytes(data)
        assert read_again(file) in (whole, b""), f"seed {SEED}: {story}"
    promise("damage").checked(len(cases))


def read_again(file: Path) -> bytes:
    """The text of a saved splitter, empty if it is refused in one line."""
    try:
        return read_splitter(file).to_text()
    except BadInput as error:
        return str(error).encode() if "\n" in str(error) else b""


def accidents(whole: bytes, other: bytes, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Some accidents to a file."""
    for _ in range(2000 if SOAK else 100):
        yield damaged(whole, other, chance)
