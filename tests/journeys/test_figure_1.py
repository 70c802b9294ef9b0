"""Partitioning functions, Figure 1, typed: plans written by hand as JSON, weighed and compared by `partition diff`."""

import json

import pytest

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
    told = json.loads(adapt.done(*"partition diff fig1.csv P2 P3 --resources LQL --format json".split()).out)
    assert (told["before"]["r_n"], told["before"]["r_c"]) == pytest.approx(before)
    assert (told["after"]["r_n"], told["after"]["r_c"]) == pytest.approx(after)
    assert told["state_moved"] == moved
    assert sum(map(sum, told["state_moved_between"])) == moved
