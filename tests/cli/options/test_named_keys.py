"""`adapt partition build` and `compare` under constraints: what comes of them, and every way to get them wrong."""

import pytest

from adapt.core.partitioning.problem.constraints import MigrationLimit


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with counts, a plan for two channels, and files of pins and keys, good and bad."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\n" + "".join(f"k{n},{3000 // n}\n" for n in range(1, 300)))
    (tmp_path / "numbers.csv").write_text("key,count\n1,5\n2,3\n")
    files = {
        "pins.csv": "key,channel\nk1,1\nk299,0\n",
        "typo.csv": "key,channel\nk1,1\nK22,0\n",
        "far.csv": "k1,1\nk2,5\n",
        "twice.csv": "k1,1\nk1,0\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def built(adapt, *line):
    return adapt.json("partition", "build", "counts.csv", *line)


def compared(adapt, *line):
    return adapt.json("partition", "compare", "counts.csv", *line)["rows"]


def test_capacities_fill_channels_in_proportion(adapt, here):
    plan = built(adapt, "--channels", 3, "--capacity", "1,1,2")
    loads = plan["predicted_loads"]["network"]
    assert loads == pytest.approx([sum(loads) / 4, sum(loads) / 4, sum(loads) / 2], rel=0.01)
    assert plan["metrics"]["imbalance"] < 1.01
    assert plan["parameters"]["capacities"] == [1, 1, 2]
    shown = adapt.done("partition", "build", "counts.csv", "--channels", 3, "--capacity", "1,1,2", "--all").out
    assert "capacity" in shown
    assert "utilization" in shown


def test_pins_come_from_options_and_a_file(adapt, here):
    plan = built(adapt, "--channels", 3, "--pin", "k2=0", "--pin", "k2=0", "--pin", "pins.csv", "--max-pins", 5)
    assert {key: plan["explicit"][key] for key in ("k1", "k2", "k299")} == {"k1": 1, "k2": 0, "k299": 0}
    assert plan["parameters"]["pinned"] == {"k1": 1, "k2": 0, "k299": 0}
    assert len(plan["explicit"]) == 6


def test_migration_keeps_to_its_limit(adapt, here):
    adapt.done(*"partition build counts.csv --channels 2 --construction scan -o 2.plan".split())
    free = built(adapt, "--channels", 3, "--from", "2.plan")["metrics"]
    held = built(adapt, "--channels", 3, "--from", "2.plan", "--max-migration", "0.5")["metrics"]
    assert held["m"] <= 0.5 < free["m"]
    assert held["r_n"] > free["r_n"]
    share = built(adapt, "--channels", 3, "--from", "2.plan", "--max-migration", "20%")["metrics"]
    assert 0.5 < share["m"] <= 0.6


def test_a_limit_below_what_must_migrate_is_refused_with_one_that_is_enough(adapt, here):
    adapt.done("partition", "build", "counts.csv", "--channels", 4, "-o", "4.plan")
    line = ["partition", "build", "counts.csv", "--channels", 2, "--max-pins", 5, "--from", "4.plan", "--max-migration"]
    for limit in ("0.1", "1%"):
        told = adapt.refused(2, *line, limit)
        assert f"--max-migration {limit} allows" in told
        enough = told.split("; use at least ")[1].split(",")[0]
        assert MigrationLimit.parse(enough).of_all == limit.endswith("%")
        adapt.done(*line, enough)


def test_one_channel_count_limits_the_move_from_the_engine(adapt, here):
    needs = adapt.refused(2, *"partition build counts.csv --channels 3 --max-migration 0.5".split())
    assert "--max-migration 0.5 needs a current plan to migrate from; give " in needs
    line = "partition compare counts.csv --channels 3 --engine kafka --max-migration 20%"
    document = adapt.json(*line.split())
    row = document["rows"][-1]
    assert (row["construction"], row["m"] <= 0.6) == ("level", True)
    assert document["verdict"]["limits"] == {"max_migration": 0.2, "max_pins": None}
    assert (document["verdict"]["state_to_move"] or 0) <= 0.2
    assert [each["recommended"] for each in document["frontier"]["points"]].count(True) == 1
    assert "together; omit one" in adapt.refused(2, *line.split(), "--utility", "A", "--capacity", "1,1,2")


def test_every_step_of_a_comparison_keeps_to_the_constraints(adapt, here):
    rows = compared(adapt, "--channels", "2,3,4", "--max-migration", "0.6", "--scheme", "hybrid")
    constructions = [name for name in ("scan", "redist", "readj", "level") for _ in range(3)]
    assert [row["construction"] for row in rows] == [None] * 3 + constructions
    assert all(row["m"] is None or row["m"] <= 0.6 for row in rows[3:])
    rows = compared(adapt, "--channels", "3,3", "--max-migration", "0", "--scheme", "bounded")
    assert [row["m"] for row in rows[-2:]] == [None, 0]
    rows = compared(adapt, "--channels", "3,3", "--capacity", "1,1,2", "--scheme", "bounded:cap=1.05")
    assert max(row["imbalance"] for row in rows if row["scheme"] != "spark") <= 1.06


@pytest.mark.parametrize("command", ["build", "compare"])
@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        (2, "--capacity 1,1", "one number per worker, such as 1,1,2 for 3 workers (got 2 for 3 workers)"),
        (2, "--capacity 1,-2,1", "for each worker (got -2)"),
        (2, "--capacity 1,1e9,1", "too far apart"),
        (2, "--pin k1", "--pin takes KEY=CHANNEL"),
        (2, "--pin k1=3", "--pin: key 'k1' is pinned to worker 3, but workers run from 0 to 2"),
        (2, "--pin k1=0 --pin k1=1", "--pin: key 'k1' is pinned to worker 1 here and to 0 by --pin; remove one"),
        (2, "--pin k1=0 --pin pins.csv", "pins.csv line 2: key 'k1' is pinned to worker 1 here and to 0 by --pin"),
        (3, "--pin K22=1", "--pin: key 'K22' is not among the 299 counted keys; did you mean 'k22'?"),
        (3, "--pin typo.csv", "typo.csv line 3: key 'K22' is not among the 299 counted keys; did you mean 'k22'?"),
        (3, "--pin twice.csv", "twice.csv line 2: key 'k1' is pinned to worker 0, but line 1 pins it to 1"),
        (2, "--pin none.csv", "or a CSV of key,channel (got 'none.csv')"),
        (2, "--scheme jump --pin k1=0", "scheme jump does not support --pin; use hybrid (scan, redist, readj"),
        (2, "--scheme spark --capacity 1,1,2", "scheme spark does not support --capacity; use hybrid (level)"),
        (2, "--construction scan --capacity 1,1,2", "construction scan does not support --capacity"),
    ],
)
def test_what_cannot_be_is_refused(adapt, here, command, code, line, told):
    refusal = adapt.refused(code, "partition", command, "counts.csv", "--channels", 3, *line.split())
    assert told in refusal


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--channels 2:3 --capacity 1,1,2", "got 3 for 2 workers"),
        ("--channels 4,2 --pin k1=2", "--pin: key 'k1' is pinned to worker 2, but workers run from 0 to 1"),
        (
            "--channels 3,4 --scheme jump --max-migration 1",
            "scheme jump does not support --max-migration; use hybrid (scan, redist, ",
        ),
        (
            "--channels 3 --scheme bounded --max-migration 1",
            "--max-migration 1 needs a current plan to migrate from, and scheme bounded does not start from today's;",
        ),
    ],
)
def test_what_does_not_fit_a_comparison_is_refused(adapt, here, line, told):
    assert told in adapt.refused(2, "partition", "compare", "counts.csv", *line.split())


def test_pins_are_of_the_type_of_the_keys(adapt, here):
    line = ["partition", "build", "numbers.csv", "--channels", 2, "--key-type", "int64", "--pin"]
    assert adapt.json(*line, "2=1")["explicit"]["2"] == 1
    assert "--pin: int64 keys must be 64-bit integers in decimal (got 'two')" in adapt.refused(3, *line, "two=1")
