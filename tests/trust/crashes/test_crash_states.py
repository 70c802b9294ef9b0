"""A crash at any call of a writer leaves its output as it was or complete, and the next run puts all right."""

import random
from pathlib import Path

import pytest

from tests.tiers import SOAK
from tests.trust.crashes.recorded import crash_states, recorded, replayed
from tests.trust.crashes.writers import (
    FORMS,
    WRITERS,
    cleaned,
    content,
    files_below,
    line_of,
    make_inputs,
    parts_of,
    put,
    said_to_be_done,
)

AGAIN = 20 if SOAK else 2
"""States from which the writer is run again."""


@pytest.fixture
def place(adapt, tmp_path, monkeypatch) -> Path:
    """The current folder, with the inputs of all writers."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    make_inputs(adapt)
    return folder


@pytest.mark.parametrize("over", [False, True], ids=["new", "over an old one"])
@pytest.mark.parametrize("name", WRITERS if SOAK else ["build", "count", "pins aside"])
def test_a_crash_leaves_the_old_artefact_or_the_new_one(adapt, place, monkeypatch, promise, name, over):
    if name == "pins aside":
        monkeypatch.setattr("adapt.traces.store.plans.MOST_KEYS_IN_JSON", 1)
    older, newer = FORMS
    if over:
        assert said_to_be_done(said := adapt(*line_of(name, older))), said
    line = line_of(name, newer, force=over)
    with recorded(place) as writer:
        start = writer.tree
        assert said_to_be_done(said := adapt(*line)), said
    assert not writer.unseen
    assert replayed(start, writer.operations).files() == files_below(place)
    old, new = parts_of(start.files()), parts_of(writer.tree.files())
    assert old != new is not None
    states = list(crash_states(start, writer.operations))
    for story, state in states:
        assert parts_of(state.files()) in (old, new), story
    for number, (story, state) in enumerate(random.Random(name).sample(states, min(AGAIN, len(states)))):
        folder = place.parent / str(number)
        put(state.files(), folder)
        monkeypatch.chdir(folder)
        before = parts_of(files_below(folder))
        if number % 2:
            assert cleaned(folder), story
            assert parts_of(files_below(folder)) == before, story
        again = line_of(name, newer, force=before is not None)
        said = adapt(*again)
        assert said_to_be_done(said), (story, said)
        assert content(parts_of(files_below(folder))) == content(new), story
        assert cleaned(folder), story
    promise("crash-states").checked(len(states))
