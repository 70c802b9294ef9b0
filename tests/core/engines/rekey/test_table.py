"""Rekey tables: every replacement lands where the plan says, by plain forms of the engines' hashes."""

import json

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.engines.rekey.marks import ALPHABET
from adapt.core.engines.rekey.table import rekey_from_data
from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.plans.plan import Plan, plan_from_data, plan_to_data
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from adapt.traces.deploy.rekeys import read_rekey, write_rekey
from tests.core.engines.rekey.references import CHANNELS_OF, keys_of, plan_of

CASES = [
    (engine, key_type)
    for engine in CHANNELS_OF
    for key_type in COLUMN_TYPES
    if (engine, key_type) != (Engine.FLINK, KeyType.BINARY)
]
every_case = pytest.mark.parametrize(("engine", "key_type"), CASES)


@every_case
def test_replacements_land_as_planned(engine, key_type):
    plan = plan_of(engine, key_type, 12, 60, 5)
    table, place = rekey_table(plan), CHANNELS_OF[engine]
    assert table.split == 5
    for key in keys_of(key_type, 65):
        wanted = plan.splits.get(key) or (plan.explicit[key],)
        used = table.as_mapping().get(key, (key,))
        assert sorted(place(new, 12, plan.max_parallelism) for new in used) == sorted(wanted)
        assert table.mark.stripped(pa.array(used, plan.explicit.column.type)).to_pylist() == [key] * len(used)


@pytest.mark.parametrize(("channels", "groups"), [(2, 128), (7, 128), (128, 128), (3, 3), (10, 32768)])
def test_flinks_key_groups_decide(channels, groups):
    plan = plan_of(Engine.FLINK, KeyType.STRING, channels, 20, 2, groups)
    table, place = rekey_table(plan), CHANNELS_OF[Engine.FLINK]
    placed = [place(new, channels, groups) for new in table.replacements.to_pylist()]
    assert table.placed.tolist() == placed
    for row, key in enumerate(table.keys.to_pylist()):
        wanted = {*plan.splits.get(key, ())} or {plan.explicit[key]}
        assert {placed[at] for at in np.flatnonzero(table.owners == row)} == wanted


def test_a_suffix_is_the_shortest():
    plan = Plan(Scheme.HYBRID, 5, KeyType.STRING, base=Engine.KAFKA, explicit={f"k{at}": at % 5 for at in range(50)})
    place = CHANNELS_OF[Engine.KAFKA]
    for key, (new,) in rekey_table(plan).as_mapping().items():
        suffix = new.removeprefix(f"{key}~")
        assert len(suffix) == 1
        earlier = ALPHABET[: ALPHABET.index(suffix)]
        assert all(place(f"{key}~{each}", 5, None) != plan.explicit[key] for each in earlier)


def test_no_key_of_the_trace_contains_the_separator():
    plan = Plan(Scheme.HYBRID, 4, KeyType.STRING, base=Engine.KAFKA, explicit={f"k{at}": 0 for at in range(9)})
    assert rekey_table(plan).mark.text == "~"
    assert rekey_table(plan, keys=[pa.array(["a~", None]), pa.array(["#b"])]).mark.text == "^"
    assert rekey_table(plan, separator="::x"[:2] + "_").mark.text == "::_"
    with pytest.raises(UsageError, match="--separator ~ occurs in key 'a~'"):
        rekey_table(plan, keys=[pa.array(["a~"])], separator="~")
    with pytest.raises(UsageError, match="as it begins"):
        rekey_table(plan, separator="::")
    with pytest.raises(UsageError, match="printable ASCII"):
        rekey_table(plan, separator="a")


def test_integers_need_bits_to_spare():
    plan = Plan(Scheme.HYBRID, 4, KeyType.INT64, base=Engine.SPARK, explicit={-3: 0, 5: 1, 6: 2, 7: 3})
    assert rekey_table(plan).mark.bits == 48
    assert rekey_table(plan, keys=[pa.array([2**55])]).mark.bits == 56
    with pytest.raises(UsageError, match="cast the keys to text"):
        rekey_table(plan, keys=[pa.array([-(2**62)])])


@pytest.mark.parametrize(
    ("plan", "engine", "said"),
    [
        (Plan(Scheme.HYBRID, 4, KeyType.STRING), Engine.SPARK, "build it with --scheme hybrid --engine spark"),
        (Plan(Scheme.HYBRID, 4, KeyType.STRING, base=Engine.KAFKA), Engine.SPARK, "other keys on kafka"),
        (Plan(Scheme.HYBRID, 4, KeyType.STRING, base=Engine.LIBRDKAFKA_RANDOM), None, "at random"),
        (Plan(Scheme.HYBRID, 4, KeyType.BINARY, base=Engine.FLINK), None, "keys of bytes"),
    ],
)
def test_what_no_replacement_can_do_is_refused(plan, engine, said):
    with pytest.raises(BadInput, match=said):
        rekey_table(plan, engine)


@every_case
def test_a_table_survives_its_file(engine, key_type, tmp_path):
    plan = plan_of(engine, key_type, 6, 10, 2)
    assert plan_from_data(json.loads(json.dumps(plan_to_data(plan)))) == plan
    table = rekey_table(plan)
    write_rekey(table, tmp_path / "rekey.json")
    again = read_rekey(tmp_path / "rekey.json")
    assert again.to_data() == table.to_data()
    assert again.as_mapping() == table.as_mapping()
    assert table.to_csv().count("\n") == 1 + len(table.replacements)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "adapt.rekey/2"}, "'schema' must be"),
        ({"keys": {"a": ["b~0"]}}, "does not lead back"),
        ({"engine": "storm"}, "storm"),
        ({"channels": 1}, "land on one channel"),
        ({"keys": 3}, "keys"),
        ({"separator": "aa"}, "printable ASCII"),
    ],
)
def test_a_damaged_table_is_refused(change, said, tmp_path):
    plan = Plan(Scheme.HYBRID, 4, KeyType.STRING, base=Engine.KAFKA, splits={"a": (0, 1, 2, 3)})
    data = rekey_table(plan).to_data() | change
    (tmp_path / "rekey.json").write_text(json.dumps(data))
    with pytest.raises(BadInput, match=said):
        read_rekey(tmp_path / "rekey.json")
    with pytest.raises(BadInput):
        rekey_from_data({})
