"""An option that cannot act is refused by name, before any file is opened."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest

from adapt.calling import COMMANDS, command_named
from adapt.cli.terminal.effect import Effect
from adapt.cli.terminal.help import choices_of, keyed, value_of

KNOWN = [
    ("partition count x.trace --master in-process --spark-conf a=b", "with --master in-process"),
    ("replay fit x.trace -n n.toml --planner c-fit --workload online", "with --planner c-fit"),
    ("replay fit x.trace -n n.toml --planner exact,c-fit --tables table-bytes=1KiB", "with --planner exact,c-fit"),
    ("replay fit x.trace -n n.toml:drops=random,batch=3", "with --network drops random"),
    ("replay flux x.trace --workers 2 --arrivals saturate --offered 1", "with --arrivals saturate"),
    ("replay flux x.trace --workers 2 --policy none --network state-bandwidth=1Mbps", "with --policy none"),
    ("replay elastic x.trace --engine kafka --producers row:buffer=99", "with --engine kafka"),
    ("replay flux x.trace --workers 2 --engine flink:unaligned", "without --engine checkpoint-interval"),
    ("replay compare x.trace --engine flink:checkpoint-pause=1ms", "without --engine checkpoint-interval"),
    ("replay flux x.trace --workers 2 --stages s.toml --engine kafka", "with --engine kafka"),
    ("replay repartition x.trace --channels 2 --scheme spark --sigma 0.5", "with --scheme spark"),
    ("replay elastic x.trace --policy flink --cooldown 9s", "with --policy flink"),
    ("replay elastic x.trace --policy fixed --rebuild 9s --migrate all:startup-time=1s", "with --policy fixed"),
]

TWICE = [
    "replay elastic x.trace --speedup 1 --offered 2 --speedup 1",
    "replay flux x.trace --workers 2 --shed 5@1s --shed 6@1s",
    "replay flux x.trace --workers 2 --network latency=1ms,latency=2ms",
]


@pytest.mark.parametrize(("line", "why"), KNOWN)
def test_an_option_that_cannot_act_is_refused(adapt, line, why):
    said = adapt(*line.split())
    assert said.code == 2
    assert "has no effect" in said.err
    assert why in said.err


@pytest.mark.parametrize("words", ["--memory 1GB --memory 2GB", "--network bandwidth=1Gbps,bandwidth=2Gbps"])
def test_a_second_amount_for_all_workers_is_refused(adapt, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    adapt.done(*"generate zipf --rows 9 --keys 3 -o x.trace".split())
    assert "is given twice for all workers" in adapt.refused(2, *f"replay flux x.trace --workers 2 {words}".split())


@pytest.mark.parametrize("line", TWICE)
def test_a_second_value_is_refused(adapt, line):
    said = adapt(*line.split())
    assert said.code == 2
    assert "given twice" in said.err


def test_a_null_byte_is_refused(adapt):
    assert "null byte" in adapt.refused(2, "replay", "fit", "x.trace", "--network", "n.toml", "--true", "a\0b")


VALUES = ["kafka", "hybrid", "uniform", "fixed", "none", "exact"]
"""Values of options whose choices the parser does not know."""


def sample(parameter: Any, among: Collection[str] = (), other_than: Collection[str] = ()) -> list[str]:
    """Words that give an option a value."""
    name, choices = max(parameter.opts, key=len), re.findall(r"[A-Za-z0-9:-]+", choices_of(parameter))
    if parameter.is_flag:
        return [name]
    amount = re.fullmatch(r"\d+[a-z]+", value_of(parameter))  # such as 5s
    usual = VALUES if among or other_than or "NAME" in value_of(parameter) else [amount[0] if amount else "1"]
    fitting = [each for each in [*choices, *usual] if each not in other_than and (not among or each in among)]
    return [f"{name}={[*fitting, *among][0]}"]


def without_effect(effect: Effect, options: Mapping[str, Any]) -> Iterator[list[str]]:
    """Words with which an option cannot act."""
    for setting in effect.needs:
        known = [each.split() for each in setting.split(" or ") if each.split()[0].partition(":")[0] in options]
        if not known or " if " in setting:
            continue
        name, *values = known[0]
        if values and ":" not in name:
            yield sample(options[name], other_than=values[0].split("|"))
        elif not values and not options[name.partition(":")[0]].required:
            yield []
    for setting in effect.unless:
        name, *values = setting.split()
        if name in options:
            yield sample(options[name], among=values[0].split("|") if values else ())


def test_every_declared_option_is_refused_where_it_cannot_act(adapt):
    tried = set()
    for words in COMMANDS.values():
        command = command_named(words)
        options = {max(each.opts, key=len): each for each in command.params if each.param_type_name == "option"}
        needed = [
            word
            for each in command.params
            if each.required
            for word in (sample(each) if each.param_type_name == "option" else ["zipf"])
        ]
        for name, parameter in options.items():
            keys = [(f"{name} {key.name}", key.effect) for key in keyed(command).get(name, list)()]
            for option, effect in [(name, command.callback.effects[parameter.name]), *keys]:
                head, _, key = option.partition(" ")
                typed = [f"{head}={key}=1"] if key else sample(parameter)
                for other in without_effect(effect, options):
                    rest = [each for each in needed if not other or each.split("=")[0] != other[0].split("=")[0]]
                    said = adapt(*words.split(), *other, *rest, *typed)
                    assert said.code == 2, (words, other, typed, said.err)
                    assert re.match(f"adapt: {head}( {key})? has no effect", said.err), (words, other, typed, said.err)
                    tried.add((words, option))
    assert len(tried) > 60


def test_spark_settings_need_a_trace(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text("key,count\na,2\nb,1\n")
    adapt.done(*"partition build c.csv --channels 2 -o x.plan".split())
    for line in (
        *(
            "partition build c.csv --channels 2",
            "partition compare c.csv --channels 2",
            "partition diff c.csv x.plan x.plan",
        ),
        *("partition evaluate c.csv x.plan", "check x.plan --limit imbalance<=9", "check c.csv --limit imbalance<=9"),
    ):
        assert "--spark-conf needs a trace" in adapt.refused(2, *line.split(), "--spark-conf", "a=b"), line
