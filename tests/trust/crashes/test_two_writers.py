"""Two writers of one output, whatever the order of their calls, and writers that are killed at each call."""

import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement, product
from pathlib import Path

import pytest

from adapt.cli.main import run
from adapt.core.errors import AdaptError
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.store import disk
from adapt.traces.store.atomic import replace_whole, whole_folder, write_whole
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.plans import write_plan
from tests.tiers import SOAK
from tests.trust.crashes.stepped import Writer, writers
from tests.trust.crashes.writers import (
    FORMS,
    OUT,
    WRITERS,
    cleaned,
    content,
    files_below,
    line_of,
    make_inputs,
    parts_of,
    said_to_be_done,
)


def folder_of(text: str, *, force: bool) -> None:
    with whole_folder(Path(OUT), force=force) as folder:
        disk.make_folder(folder / "inner")
        disk.write_bytes(folder / "inner" / "data", text.encode())
        disk.write_bytes(folder / MANIFEST, text.encode())


def file_of(text: str, *, force: bool) -> None:
    write_whole(Path(OUT), text.encode(), force=force)


def saved_state(text: str, *, force: bool) -> None:
    replace_whole(Path(OUT), text.encode())


def plan_of(text: str, *, force: bool) -> None:
    """A plan with pinned keys in a file of their own."""
    plan = Plan(Scheme.HYBRID, 4, KeyType.STRING, explicit={text: 1, "b": 2})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("adapt.traces.store.plans.MOST_KEYS_IN_JSON", 1)
        write_plan(plan, Path(OUT), Provenance("a test"), force=force)


LAYERS = {"folder": folder_of, "file": file_of, "state": saved_state, "plan": plan_of}
"""The four ways in which artefacts are written."""
PAIRS = [(*pair, False) for pair in combinations_with_replacement(LAYERS, 2)]
PAIRS += [(one, other, True) for one, other, _ in PAIRS if (one == "folder") == (other == "folder")]
"""With whether they overwrite; no folder overwrites a file, nor the other way round."""


def ended(write: Callable[..., None], text: str, *, force: bool) -> int:
    """Write, and say what is wrong as the command line does."""
    try:
        write(text, force=force)
    except AdaptError as error:
        print(f"adapt: {error}")
        return error.exit_code
    return 0


def outcome(*works: Callable[[], int], said: Path, first: int, second: int) -> tuple[list[Writer], str]:
    """Run two writers: so many calls of one, so many of the other, then each to its end; what they left."""
    with writers(*works, said=said) as (one, other):
        one.pass_calls(first)
        other.pass_calls(second)
        one.pass_calls()
        other.pass_calls()
    return [one, other], f"{first} calls, then {second}: {[(each.code, each.said) for each in (one, other)]}"


def calls_of(work: Callable[[], int], said: Path) -> int:
    """How many calls a writer makes alone."""
    with writers(work, said=said) as (alone,):
        alone.pass_calls()
    return alone.steps


@pytest.mark.parametrize(("one", "other", "over"), PAIRS if SOAK else random.Random(3).sample(PAIRS, 4))
def test_of_two_writers_one_is_refused_or_comes_after(tmp_path, monkeypatch, promise, one, other, over):
    place = tmp_path / "place"

    def fresh() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        os.chdir(place)
        if over:
            LAYERS[one]("old", force=False)

    monkeypatch.chdir(tmp_path)
    works = [partial(ended, LAYERS[name], text, force=over) for name, text in ((one, "1"), (other, "2"))]
    whole: list[object] = []
    calls: list[int] = []
    for work in works:
        fresh()
        assert work() == 0
        whole.append(parts_of(files_below(place)))
        fresh()
        calls.append(calls_of(work, tmp_path))
    chance = random.Random(one + other)
    twice = list(product(range(calls[0] + 1), range(1, calls[1])))
    schedules = [(first, calls[1]) for first in range(calls[0] + 1)] + chance.sample(twice, min(60, len(twice)))
    schedules = schedules if SOAK else chance.sample(schedules, 8)
    for first, second in schedules:
        fresh()
        told, story = outcome(*works, said=tmp_path, first=first, second=second)
        found = parts_of(files_below(place))
        assert found in [each for each, writer in zip(whole, told, strict=True) if writer.code == 0], story
        assert all(writer.code == 0 or is_refusal(writer) for writer in told), story
        assert cleaned(place), story
        assert parts_of(files_below(place)) == found, story
    promise("two-writers").checked(len(schedules))


def is_refusal(writer: Writer) -> bool:
    return writer.code == 4 and writer.said.startswith("adapt: ") and writer.said.count("\n") == 1


@pytest.fixture
def inputs(adapt, tmp_path, monkeypatch) -> Path:
    """A folder with the inputs of all writers, in a process that has compiled their kernels."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    make_inputs(adapt)
    return folder


def made_by(adapt, inputs: Path, name: str, form: int) -> object:
    """What a writer makes."""
    assert said_to_be_done(adapt(*line_of(name, form)))
    made = content(parts_of(files_below(inputs)))
    disk.remove_tree(inputs / OUT)
    return made


def command(line: list[str]) -> Callable[[], int]:
    return partial(run, list(map(str, line)))


COMMANDS = random.Random(5).sample(list(combinations_with_replacement(WRITERS, 2)), 153 if SOAK else 1)
ORDERS = 3 if SOAK else 1


@pytest.mark.parametrize(("one", "other"), COMMANDS)
def test_of_two_commands_one_is_refused_or_comes_after(adapt, inputs, tmp_path, promise, one, other):
    chance = random.Random(one + other)
    whole = [made_by(adapt, inputs, name, form) for name, form in zip((one, other), FORMS, strict=True)]
    for order in range(ORDERS):
        force = bool(order % 2)
        works = [command(line_of(name, form, force=force)) for name, form in zip((one, other), FORMS, strict=True)]
        first, second = chance.randrange(60), chance.randrange(1, 60)
        told, story = outcome(*works, said=tmp_path, first=first, second=second)
        found = content(parts_of(files_below(inputs)))
        done = [each for each, writer in zip(whole, told, strict=True) if writer.code in (0, 1)]
        assert found in done, story
        assert all(writer.code in (0, 1) or is_refused(writer) for writer in told), story
        assert len(done) == 1 or force, story
        assert cleaned(inputs), story
        disk.remove_tree(inputs / OUT)
    promise("two-writers").checked(ORDERS)


def is_refused(writer: Writer) -> bool:
    """Its last line says why; a verdict reads its trace again, which the other may have replaced."""
    return (
        writer.code in (3, 4) and writer.said.splitlines()[-1].startswith("adapt: ") and "Traceback" not in writer.said
    )


@pytest.mark.parametrize("over", [False, True], ids=["new", "over an old one"])
@pytest.mark.parametrize("name", WRITERS if SOAK else ["ingest"])
def test_a_writer_killed_at_a_call_leaves_all_or_nothing(adapt, inputs, tmp_path, promise, name, over):
    older, newer = FORMS
    old, new = made_by(adapt, inputs, name, older), made_by(adapt, inputs, name, newer)
    start = tmp_path / "start"
    if over:
        adapt(*line_of(name, older))
    shutil.copytree(inputs, start)
    line = line_of(name, newer, force=over)
    calls = calls_of(command(line), tmp_path)
    every = SOAK and name in ("build", "ingest")
    points = random.Random(6).sample(range(1, calls + 1), calls if every else min(calls, 12 if SOAK else 3))
    for at in points:
        shutil.rmtree(inputs)
        shutil.copytree(start, inputs)
        os.chdir(inputs)
        with writers(command(line), said=tmp_path) as (writer,):
            writer.pass_calls(at - 1)
        found = parts_of(files_below(inputs))
        assert content(found) in ((old if over else None), new), f"{name} killed at call {at} of {calls}"
        said = adapt(*line_of(name, newer, force=found is not None))
        assert said_to_be_done(said), said
        assert content(parts_of(files_below(inputs))) == new
        assert cleaned(inputs)
    promise("killed-at-calls").checked(len(points))
