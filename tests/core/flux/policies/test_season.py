"""After what time load recurs, as found from the arrivals so far."""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.flux.policies import season
from adapt.core.flux.policies.season import season_of
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners

PARTITIONS, DAY_S, RATE = 16, 8.6, 400
STAGE = StageSettings(4, even_owners(4, 4), even_groups(PARTITIONS, PARTITIONS))


def stream(days, swing, seed=0, day_s=DAY_S, after=None, rate=RATE):
    """Rows at an even rate, of partitions whose shares follow the time of day, each at an hour of its own."""
    chance = np.random.default_rng(seed)
    due_s = np.sort(chance.random(int(rate * days * day_s))) * days * day_s
    phase = 2 * np.pi * (due_s[:, None] / day_s + np.arange(PARTITIONS) / PARTITIONS)
    ends = np.cumsum(1 + swing * np.sin(phase), axis=1)
    groups = (chance.random(len(due_s))[:, None] * ends[:, -1:] > ends).sum(axis=1)
    if after is not None:
        groups[due_s > after] = 0
    columns = groups, np.zeros(len(groups), np.int64), due_s
    return Rows(lambda: (Chunk(*(each[at : at + 999] for each in columns)) for at in range(0, len(groups), 999)))


def test_a_day_is_found_once_it_has_passed_three_times():
    for swing in (1.0, 0.5):
        found = season_of(stream(6, swing), STAGE, 0.15)
        assert found.length_s == pytest.approx(DAY_S, rel=0.03)
        assert 2.9 * DAY_S <= found.known_s <= 4.5 * DAY_S


def test_what_comes_after_it_is_known_changes_nothing():
    found = season_of(stream(6, 1.0), STAGE, 0.15)
    assert season_of(stream(6, 1.0, after=found.known_s + 0.15), STAGE, 0.15) == found


def test_a_long_stream_keeps_its_memory_and_finds_a_long_season(monkeypatch):
    monkeypatch.setattr(season, "MOST_BINS", 64)
    day_s = 64 * 0.002
    found = season_of(stream(5, 1.0, day_s=day_s, rate=20_000), STAGE, 0.001)
    assert found.length_s == pytest.approx(day_s, rel=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_load_that_does_not_recur_is_refused(seed):
    with pytest.raises(UsageError, match=r"recurs within .* give --season, or use load-several"):
        season_of(stream(6, 0.0, seed), STAGE, 0.15)


def test_rows_without_times_are_refused():
    lacking = Rows(lambda: iter([Chunk(np.zeros(3, int), np.zeros(3, int))]))
    with pytest.raises(UsageError, match="give --season"):
        season_of(lacking, STAGE, 0.15)
