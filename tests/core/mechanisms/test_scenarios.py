"""Scenarios: what there is, what goes together, and how a user writes them."""

import pytest

from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.elastic.policies.scaler import ScaleOn
from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.network.names import DropPlanner
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.mechanisms.scenarios import (
    BASELINE,
    BY_NAME,
    FIELDS,
    SCENARIOS,
    Scenario,
    Static,
    chosen,
    read_scenarios,
)
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.conditions.names import Migrating, RestartName
from adapt.core.stage.conditions.shed_factor import Thresholds

ALL = """# mine
[[scenario]]
name = "flux"
plan = "hybrid"
flux = "load-several"
memory = 1.3
shed = true

[[scenario]]
name = "scaled"
elastic = "thresholds"
workers = 2
pool = 6
tau = [0.2, 0.5, 0.7, 0.8]
signal = "offered"
scale_on = "25%"
scale_out_delay = "200ms"
cooldown = "2s"
alignment = "factors"
utilization = 0.7
lag = 50
rebuild = "5s"
rebuild_limit = 1.5
migrate = "hottest"
restart = "kafka-eager"

[[scenario]]
name = "parts"
split = "w-choices"

[[scenario]]
name = "planned"
drop = "d-fit"

[[scenario]]
name = "by-lag"
elastic = "lag"
lag = 20

[[scenario]]
name = "own"
flux = "mine:Calm"
policy_options = { threshold = 0.1, quick = true }
"""


def test_the_built_in_ones_cover_every_mechanism():
    assert len(SCENARIOS) >= 10
    assert len({one.name for one in (*SCENARIOS, *BY_NAME)}) == len(SCENARIOS) + len(BY_NAME)
    assert {one.elastic for one in (*SCENARIOS, *BY_NAME)} >= set(ScalingPolicy) - {ScalingPolicy.FIXED}
    assert {one.plan for one in SCENARIOS} == set(Static)
    assert {one.flux for one in SCENARIOS} >= {FluxPolicy.LOAD, FluxPolicy.MEMORY, FluxPolicy.HYBRID}
    kinds = {
        (one.split is not None, one.flux is not None, one.elastic is not None, one.rebuilds, one.sheds)
        for one in SCENARIOS
    }
    assert kinds >= {
        (True, False, False, False, False),
        (False, False, False, True, False),
        (False, False, False, False, True),
        (False, True, False, False, True),
        (False, False, True, False, True),
    }


def test_what_is_chosen_is_held_against_the_baseline():
    assert [one.name for one in chosen(["shed", "shed", "flux-load"])] == [BASELINE, "shed", "flux-load"]
    assert chosen([]) == SCENARIOS
    assert [one.name for one in chosen(["all", "slicer"])] == [*(one.name for one in SCENARIOS), "slicer"]
    assert [one.name for one in chosen(["flink", "slicer"])] == [BASELINE, "flink", "slicer"]
    own = Scenario("mine", sheds=True)
    assert [one.name for one in chosen([], [own])] == [BASELINE, "mine"]
    assert [one.name for one in chosen(["mine", "ds2"], [own])] == [BASELINE, "mine", "ds2"]
    assert chosen(["shed"], [Scenario("shed", flux=FluxPolicy.LOAD)])[1].flux is FluxPolicy.LOAD
    with pytest.raises(UsageError, match="scenario 'flux-laod' does not exist; did you mean 'flux-load'"):
        chosen(["flux-laod"])


def test_what_a_scenario_says_is_told_and_nothing_else():
    assert Scenario("x").as_data() == {"name": "x"}
    assert Scenario("x", scale_on=ScaleOn(None)).as_data() == {"name": "x", "scale_on": "mean"}
    said = Scenario("x", thresholds=Thresholds(), pool=3).as_data()
    assert said == {"name": "x", "pool": 3, "thresholds": {"tau0": 0.1, "tau1": 0.4, "tau2": 0.8, "tau3": 0.9}}


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ({"split": Splitting.PKG, "flux": FluxPolicy.LOAD}, "split and flux"),
        ({"split": Splitting.PKG, "plan": Static.HYBRID}, "split and a plan"),
        ({"flux": FluxPolicy.LOAD, "elastic": ScalingPolicy.DS2}, "flux and elastic"),
        ({"memory": 1.2, "rebuilds": True}, "memory and rebuild"),
        ({"plan": Static.CONSISTENT, "elastic": ScalingPolicy.LAG}, "a plan and elastic"),
        ({"drops": DropPlanner.EXACT, "flux": FluxPolicy.LOAD}, "drop and flux"),
    ],
)
def test_parts_that_do_not_go_together_are_named(said, parts):
    with pytest.raises(UsageError, match=f"scenario 'x': {parts} exclude each other"):
        Scenario("x", **said)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", ".hidden"])
def test_a_name_is_one_of_a_folder(name):
    with pytest.raises(UsageError, match="cannot be named"):
        Scenario(name)


def test_a_file_says_all_that_a_scenario_has():
    asked = []

    def find(*words):
        asked.append(words)
        return OwnCode(words[0], words[1], "", "", print) if ":" in words[1] else None

    flux, scaled, parts, planned, by_lag, own = read_scenarios(ALL, find)
    assert asked[-1] == ("policy", "mine:Calm", {"threshold": "0.1", "quick": "true"}, "flux")
    assert own.flux.name == "mine:Calm"
    assert flux == Scenario("flux", Static.HYBRID, flux=FluxPolicy.LOAD_SEVERAL, memory=1.3, sheds=True)
    assert scaled == Scenario(
        "scaled",
        rebuilds=True,
        rebuild_s=5.0,
        rebuild_limit=1.5,
        elastic=ScalingPolicy.THRESHOLDS,
        workers=2,
        pool=6,
        thresholds=Thresholds(0.2, 0.5, 0.7, 0.8),
        signal=Signal.OFFERED,
        scale_on=ScaleOn(0.25),
        scale_out_delay_s=0.2,
        cooldown_s=2.0,
        alignment=Alignment.FACTORS,
        utilization=0.7,
        lag_rows=50.0,
        migrating=Migrating.HOTTEST,
        restart=RestartName.KAFKA_EAGER,
    )
    assert parts == Scenario("parts", split=Splitting.W_CHOICES)
    assert planned == Scenario("planned", drops=DropPlanner.D_FIT)
    assert by_lag == Scenario("by-lag", elastic=ScalingPolicy.LAG, lag_rows=20.0)
    assert all(f"\n{field} = " in ALL for field in FIELDS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[[scenario]]\nname = 'a'\nshedd = 1",
            "line 3: scenario 'a' has an unknown field 'shedd'; did you mean 'shed'",
        ),
        (
            "[[scenario]]\nname = 'a'\nshed = true\n\n[[scenario]]\nname = 'b'\n\nshed = false\nfluks = 'load'",
            "line 9: scenario 'b' has an unknown field 'fluks'; did you mean 'flux'",
        ),
        ("\n[[scenarios]]\nname = 'a'", "line 2: the file has an unknown field 'scenarios'; did you mean 'scenario'"),
        ("seed = 3\n[[scenario]]\nname = 'a'", "line 1: the file has an unknown field 'seed'"),
        (
            "[[scenario]]\nname = 'a'\n[[scenario]]\nname = 'b'\n[[scenario]]\nname = 'a'",
            "line 5: scenario 'a' already exists on line 1",
        ),
        (
            "\n[[scenario]]\nname = 'a'\nelastic = 'thresholds'\ntau = [0.5, 0.4, 0.8, 0.9]",
            "line 2: scenario 'a': tau1 .* above tau0",
        ),
        ("[[scenario]]\nname = 'a'\ntau = [0.1]", "tau takes four thresholds such as .* \\(got \\[0.1\\]\\)"),
        ("[[scenario]]\nname = 'a'\ntau = ['x', 0.2, 0.3, 0.4]", r"tau must be a number \(got 'x'\)"),
        (
            "[[scenario]]\nname = 'a'\nelastic = 'ds2'\nworkers = 5\npool = 3",
            "line 1: scenario 'a': the pool of 3 workers is smaller than the 5",
        ),
        ("[[scenario]]\nname = 'a'\nscale_out_delay = '0s'", "the scale-out delay must be above 0 s"),
        ("[[scenario]]\nname = 'a'\ncooldown = '0s'", "the cooldown must be above 0 s"),
        ("[[scenario]]\nname = 'a'\nscale_out_delay = 'soon'", "scale_out_delay: 'soon'"),
        ("[[scenario]]\nname = 'a'\ncooldown = 2", "cooldown takes a time with a unit"),
        ("[[scenario]]\nname = 'a'\nrebuild = '0s'", "the time between rebuilds must be above 0 s"),
        (
            "[[scenario]]\nname = 'a'\nsplit = 'pkg'\nflux = 'load'",
            "line 1: scenario 'a': split and flux exclude",
        ),
        (
            "[[scenario]]\nname = 'a'\n\n[[scenario]]\nname = 'b'\nelastic = 'ds2'\ndrop = 'lp'",
            "line 4: scenario 'b': drop and elastic exclude each other; remove one",
        ),
        ("[[scenario]]\nname = 'a'\nplan = 'hybird'", "there is no plan 'hybird'; did you mean 'hybrid'"),
        ("[[scenario]]\nshed = true", "line 1: one \\[\\[scenario\\]\\] has no name"),
        ("[[scenario]]\nname = 'a b'", "cannot be named 'a b'"),
        ("[[scenario]]\nname = 'a'\nflux = 'a:B'\npolicy_options = 3", "policy_options takes a table such as .*got 3"),
        ("[[scenario]]\nname = 'a'\npolicy_options = {x = 1}", "policy_options are those of a policy of your own"),
        ("", "the file has no scenario; start each"),
        ("scenario = 3", "scenario must be a list of tables"),
        ("[[scenario]\n", "the file is not TOML"),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_its_line(text, sentence):
    with pytest.raises(BadInput, match=sentence):
        read_scenarios(text)
