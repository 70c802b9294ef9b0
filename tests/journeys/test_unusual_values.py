"""Unusual option values in every command: an answer or one sentence, soon and in little memory, and never a bug."""

import re
import resource
import signal
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapt.calling import command_named
from adapt.cli.terminal.help import choices_of, keyed
from adapt.core.errors import EnvironmentFailure
from tests.any_trace import VISITS, two_halves
from tests.conftest import InProcess, Said
from tests.journeys.test_few_rows import MOST_CPU_S, out_of_time
from tests.tiers import SOAK

LINES = [
    ("verdict", "x.trace --channels=4 --out=kept.trace"),
    ("ingest", "in.csv --key=key --out=i.trace"),
    ("lint", "x.trace"),
    ("report", "x.trace x.plan"),
    ("check", "x.plan --limit=imbalance<=9"),
    ("generate", "zipf --rows=50 --keys=9 --out=z.trace"),
    ("clean", "."),
    ("partition count", "x.trace"),
    ("partition build", "x.trace --channels=4"),
    ("partition compare", "x.trace --channels=4"),
    ("partition tolerance", "--utilization=0.9"),
    ("partition diff", "x.trace x.plan y.plan"),
    ("partition evaluate", "x.trace x.plan"),
    ("partition export", "x.plan --to=rekey --out=exported"),
    ("replay repartition", "x.trace --channels=4 --period=1s"),
    ("replay repartition", "x.trace --channels=4 --period=1s --live"),
    ("replay flux", "x.trace --workers=4"),
    ("replay elastic", "x.trace --pool=4"),
    ("replay fit", "x.trace --network=net.toml"),
    ("replay ordered", "x.trace --chain=chain.toml --workers=1 --backend=sim"),
    ("replay compare", "x.trace --channels=4 --seeds=1 --jobs=1 --scenario=flux-load"),
    ("advise salts", "x.trace --parallelism=4"),
    ("advise which-key", "x.trace --channels=4"),
    ("advise workers", "--rate=9 --shed=10@60s"),
    ("calibrate spark", "in.csv"),
    ("calibrate flink", "http://localhost:1"),
    ("cluster check", "--master=local[1]"),
    ("demo", "--out=shown"),
    ("partition route", "x.plan keys.txt"),
]
"""A command line of each command that works on a small trace."""

NUMBERS = [
    *("0", "1", "2", "-1", "-0.0", "1e300", "-1e300", "inf", "nan", "1e-300", "1e-9", "0.5", "1.5", "7"),
    *("1000", "100000", "100000000", str(2**31), str(2**63 - 1), str(2**63), "9" * 30),
]
AMOUNTS = ["0", "1", "2", "99", "1000000"]
"""Numbers in the place of those of an example."""

VALUES = [
    *NUMBERS,
    *("1h", "0s", "1ns", "-1s", "1e9s", "1bps", "1TB", "0%", "1e-4%", "100%", "1@0s:0.0001%", "5@1s"),
    *("", " ", "x" * 5000, "ключ 😀", "a\0b", "a=b=c", "1,1", "1,2,1", "3:1", "1:3", "0:9", "all", "auto", "folder"),
    *("missing.file", "x.trace", "x.plan", "net.toml", "in.csv", "-", "../", "9999999x9", "9@1h", "rows@1ns"),
]

LEFT_OUT = ("help", "help_all", "master", "table", "sql", "_metrics", "json", "jobs")
"""What starts Spark or processes, or shows a page."""

MOST_BYTES = 2 << 30
"""Most memory that a command may take beyond what the process has."""


def drawn(chance: np.random.Generator) -> list[str]:
    """A command line with one to three unusual values."""
    words, base = LINES[chance.integers(len(LINES))]
    command, typed = command_named(words), base.split()
    options = [each for each in command.params if each.param_type_name == "option" and each.name not in LEFT_OUT]
    for option in chance.permutation(np.array(options, object))[: 1 + chance.choice(3, p=(0.6, 0.3, 0.1))]:
        name, keys = max(option.opts, key=len), keyed(command).get(max(option.opts, key=len), list)()
        typed = [each for each in typed if each.partition("=")[0] != name or keys or option.multiple]
        if option.is_flag:
            typed.append(str(chance.choice([*option.opts, *option.secondary_opts])))
        elif keys and chance.random() < 0.8:
            key = keys[chance.integers(len(keys))]
            head = f"{chance.choice(key.of)}:" if key.of else ""
            typed.append(f"{name}={head}{key.name}={value_of(key.parameter, chance)}")
        else:
            typed.append(f"{name}={value_of(option, chance)}")
    return [*words.split(), *typed]


def value_of(option: Any, chance: np.random.Generator) -> str:
    """A value of an option: an end of its range, one of its choices, its example, or an unusual one."""
    choices, example = choices_of(option).split(", "), str(option.metavar or "")
    ends = ends_by_name().get(max(option.opts, key=len).split()[-1].strip("-"))
    if ends and chance.random() < 0.3:
        return str(chance.choice(ends))
    if option.type_descriptor.annotation in (int, float) and chance.random() < 0.9:
        return str(chance.choice(NUMBERS))
    if choices != [""] and chance.random() < 0.8:
        return str(chance.choice(choices))
    if any(map(str.isdigit, example)) and chance.random() < 0.7:
        return re.sub(
            r"\d+", lambda said: str(chance.choice([said[0], *AMOUNTS])), str(chance.choice(example.split("|")))
        )
    return str(chance.choice(np.array(VALUES, object)))


@cache
def ends_by_name() -> dict[str, list[str]]:
    """Ends of the ranges that settings declare, and values beside them, by the last word that is typed."""
    found = defaultdict(list)
    declared = (
        (each.metadata["knob"], each.name)
        for module in [module for name, module in sys.modules.items() if name.startswith("adapt.")]
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind)
        for each in fields(kind)
        if "knob" in each.metadata and each.metadata["knob"].range
    )
    for knob, name in declared:
        write, near = (knob.unit.write, ()) if knob.unit else (str, (-1e-9, 1e-9))
        for end in (each for each in astuple(knob.range) if each is not None):
            found[knob.name(name).split()[-1]] += [write(end + each) for each in (0, -1, 1, *near)]
    return found


@contextmanager
def limited() -> Iterator[None]:
    """Ends what takes too much CPU time or memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (pages * resource.getpagesize() + MOST_BYTES, before[1]))
    signal.signal(signal.SIGPROF, out_of_time)
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, before)


def fault(said: Said) -> str:
    """What is wrong with what a command said; empty if nothing is."""
    last = (said.err.splitlines() or [""])[-1]
    if said.code not in (0, 1, 2, 3, 4):
        return f"exit {said.code}"
    if said.code in (2, 3, 4) and not last.startswith("adapt: "):
        return "no sentence"
    if "memory" in last and said.code == 4:
        return "memory"
    if not said.out and not said.err:
        return "silence"
    return "warning" if "Warning" in said.err or "Traceback" in said.err else ""


def made_inputs(adapt: InProcess) -> None:
    """The files that the command lines name."""
    lines = "".join(f"{second}.5,k{second * second % 7},{second % 3}\n" for second in range(60))
    Path("in.csv").write_text(f"ts,key,cost_us\n{lines}")
    adapt.done(*"generate zipf --rows 200 --keys 30 --rate 100 --cost constant(1ms) -o x.trace".split())
    for plan, channels in (("x.plan", 4), ("y.plan", 5)):
        adapt.done(*f"partition build x.trace --channels {channels} -o {plan}".split())
    Path("net.toml").write_text(two_halves("1s", 0.001))
    Path("chain.toml").write_text(VISITS)
    Path("keys.txt").write_text("k1\nk2\n")
    Path("folder").mkdir()


def no_java(_: object) -> None:
    """Stands in the place of starting Spark."""
    raise EnvironmentFailure("there is no Java")


@pytest.mark.parametrize("batch", range(25 if SOAK else 1))
def test_unusual_values_end_soon_in_an_answer_or_one_sentence(adapt, tmp_path, monkeypatch, promise, batch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("adapt.traces.spark.session._started", no_java)
    made_inputs(adapt)
    for words, _ in LINES:
        command_named(words)  # imports what declares ranges
    faults = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(40 * batch, 40 * (batch + 1)):
            typed = drawn(np.random.default_rng(seed))
            with limited():
                said = adapt(*typed)
            if found := fault(said):
                faults.append((seed, found, typed, said.err[-300:]))
    assert not faults, "\n".join(map(str, faults))
    promise("option-values").checked(40)
