"""`--replicas`, `--whole-load` and `--utility BTM`: what plans become of them, and where they are refused."""

import json

import pytest

COMMANDS = ["partition build counts.csv", "partition compare counts.csv"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\n" + "".join(f"k{n},{3000 // n}\n" for n in range(1, 300)))


def built(adapt, *line):
    return json.loads(adapt.done("partition", "build", "counts.csv", *line, "--format", "json").out)


def test_replicas_are_of_the_ring_and_of_the_plans_that_follow(adapt, here):
    few = built(adapt, "--channels", 4, "--replicas", 20, "--max-pins", 0, "-o", "few.plan")
    many = built(adapt, *"--channels 4 --base consistent --max-pins 0".split())
    assert (few["replicas"], many["replicas"]) == (20, 1000)
    assert few["metrics"]["r_n"] != many["metrics"]["r_n"]
    follows = built(adapt, *"--channels 4 --from few.plan --max-pins 0".split())
    assert (follows["replicas"], follows["metrics"]["m"]) == (20, 0)
    assert built(adapt, *"--channels 4 --from few.plan --max-pins 0 --replicas 40".split())["metrics"]["m"] > 0


def test_the_whole_load_is_balanced_on_request(adapt, here):
    line = "--channels 8 --base consistent --construction scan --max-pins 9".split()
    plan, pinned_alone = built(adapt, *line, "--whole-load"), built(adapt, *line)
    assert plan["metrics"]["b"] < 0.8 * pinned_alone["metrics"]["b"]
    assert (plan["parameters"]["whole_load"], "whole_load" in pinned_alone["parameters"]) == (True, False)
    assert built(adapt, *line, "--utility", "BTM")["parameters"]["utility"] == "BTM"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--replicas 0", "at least 1 (got"),
        ("--replicas 100001", "at most 100000 (got"),
        (
            "--replicas 5 --base kafka",
            "--replicas are those of a hash ring, but kafka has none; omit it",
        ),
    ],
)
def test_replicas_that_no_ring_has_are_refused(adapt, here, command, line, told):
    assert told in adapt.refused(2, *command.split(), "--channels", 3, *line.split())


def test_the_objective_is_refused_where_a_construction_cannot_lower_it(adapt, here):
    for construction in ("level", "unlocked", "readj-printed"):
        line = f"partition build counts.csv --channels 3 --utility BTM --construction {construction}"
        told = f"construction {construction} does not support --utility BTM; use hybrid (scan, redist, readj)"
        assert told in adapt.refused(2, *line.split())
