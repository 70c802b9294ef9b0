"""The splitter: counts as the sliding counter does, routes as its plan says, adopts in order, and is saved."""

import os
import re
import shutil
import struct
import subprocess
import threading
from pathlib import Path

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.sliding import SlidingLossyCounter, SlidingWindow
from adapt.core.engines.any_language.export import SPLITTER
from adapt.core.engines.any_language.plan_text import plan_text
from adapt.core.engines.names import Engine
from adapt.core.errors import AdaptError, BadInput, UsageError
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.keys.names import HashName
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.loop.splitter import Splitter
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan, plan_from_data, plan_to_data
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType, Weight
from adapt.core.units.row_or_time_span import Length
from adapt.traces.deploy.export import source_of
from adapt.traces.deploy.splitters import read_splitter, write_splitter
from adapt.traces.spark.java import find_java_home

ROWS = SlidingWindow(Length(4000, in_rows=True))


def zipf_keys(rows, seed=0, keys=300, shift=0):
    """Keys of a Zipf stream; a shift makes other keys the hot ones."""
    shares = 1 / np.arange(1, keys + 1)
    drawn = np.random.default_rng(seed).choice(keys, rows, p=shares / shares.sum())
    return pa.array([f"key {(number + shift) % keys}" for number in drawn.tolist()])


def splitter(channels=4, window=ROWS, **given):
    return Splitter(channels, Recipe(max_pins=20), window=window, epsilon=1e-3, **given)


def imbalance(splitter, keys):
    loads = np.bincount(splitter.route(keys), minlength=splitter.plan.channels)
    return loads.max() / loads.mean()


def words(form, *numbers):
    return [struct.pack(form, number) for number in numbers]


TYPED = {
    "int32": ([7, -1], words("<i", 7, -1)),
    "int64": ([7, -1], words("<q", 7, -1)),
    "date": (["1970-01-08", "1969-12-31"], words("<i", 7, -1)),
    "decimal(10,2)": (["0.07", "-12.50"], words("<q", 7, -1250)),
    "timestamp": (["1970-01-01 00:00:07", "1969-12-31 23:59:59.999999"], words("<q", 7_000_000, -1)),
    "binary": ([b"\x00\xff\x80\x01", b""], [b"\x00\xff\x80\x01", b""]),
    "string": (["user", "\u00fc\u00fc"], [b"user", "\u00fc\u00fc".encode()]),
    "(string,int32)": (['["user",7]', "[null,-1]"], [(b"user", *words("<i", 7)), words("<i", -1)]),
}
"""Keys, and what Spark hashes: numbers little-endian, one column after the other."""


@pytest.mark.parametrize("key_type", TYPED)
def test_keys_of_every_type_go_where_spark_has_them(key_type):
    keys, hashed = TYPED[key_type]
    plan = Plan(Scheme.HYBRID, 12, KeyType(key_type), base=Engine.SPARK)
    one = Splitter(12, Recipe(base=Engine.SPARK), key_type=KeyType(key_type), plan=plan)
    expected = []
    for each in hashed:
        seed = 42
        for column in [each] if isinstance(each, bytes) else each:
            seed = mmh3.hash(column, seed & 0xFFFFFFFF)
        expected.append(seed % 12)
    assert [one.route_key(key) for key in keys] == expected
    assert one.route(pa.array(keys)).tolist() == expected
    if plan.key_type.storage in (KeyType.INT64, plan.key_type):
        assert Splitter.from_text(one.to_text()).route(pa.array(keys)).tolist() == expected
    else:
        with pytest.raises(BadInput, match="by their type, which plans as text do not describe"):
            one.to_text()


def test_integers_in_the_bytes_of_their_type_and_text_in_several_chunks_are_routed_too():
    by_type = [
        Splitter(12, Recipe(base=Engine.SPARK), key_type=KeyType(kind)).route(pa.array([7, -1], kind)).tolist()
        for kind in ("int8", "int16", "int32")
    ]
    assert by_type == [[mmh3.hash(key, 42) % 12 for key in words("<i", 7, -1)]] * 3
    text = Splitter(12, Recipe(base=Engine.SPARK))
    assert text.route(pa.chunked_array([["user"], ["key1"]])).tolist() == [
        mmh3.hash(key, 42) % 12 for key in ("user", "key1")
    ]


@pytest.mark.parametrize(
    ("key_type", "key"),
    [
        ("int32", 2**31),
        ("int16", -(2**15) - 1),
        ("int8", 128),
        ("date", "2023-02-29"),
        ("timestamp", "2024-01-01 24:00:00"),
        ("boolean", "True"),
        ("decimal(10,2)", "1.001"),
        ("decimal(10,2)", "123456789.00"),
        ("decimal(10,2)", "1E30"),
        ("(string,int32)", '["a",2147483648]'),
        ("(string,int32)", '["a"]'),
    ],
)
def test_a_key_that_its_type_does_not_have_is_refused(key_type, key):
    one = Splitter(12, Recipe(base=Engine.SPARK), key_type=KeyType(key_type))
    for refused in (one.route, one.observe):
        with pytest.raises(UsageError, match=f"was made for {re.escape(key_type)} keys"):
            refused(pa.array([None, key]))
    with pytest.raises(UsageError, match=rf"was made for {re.escape(key_type)} keys \(got {re.escape(repr(key))}\)"):
        one.route_key(key)


KEYS = {
    "string": st.text(max_size=40),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "binary": st.binary(max_size=40),
    "date": st.dates().map(str),
}


@pytest.mark.parametrize("base", [Scheme.CONSISTENT, Scheme.UNIFORM, Engine.SPARK, Engine.KAFKA, Engine.FLINK])
@given(st.data())
@settings(max_examples=10, deadline=None)
def test_a_key_alone_is_routed_as_in_a_column(base, data):
    known = [kind for kind in KEYS if base is not Engine.FLINK or kind != "date"]
    kind = data.draw(st.sampled_from(known))
    keys = [*data.draw(st.lists(KEYS[kind])), None, "" if kind == "string" else None]
    pins = dict.fromkeys(data.draw(st.lists(st.sampled_from(keys), max_size=2)), 11)
    plan = Plan(Scheme.HYBRID, 12, KeyType(kind), base=base, explicit=pins)
    one = Splitter(12, Recipe(base=base), key_type=plan.key_type, plan=plan)
    column = pa.array(keys, ARROW_TYPES[plan.key_type])
    assert [one.route_key(key) for key in keys] == one.route(column).tolist()


@pytest.mark.parametrize("key_type", TYPED)
def test_pins_of_every_type_are_read_from_a_side_table(key_type):
    plan = Plan(Scheme.HYBRID, 12, KeyType(key_type), base=Engine.SPARK, explicit=dict.fromkeys(TYPED[key_type][0], 3))
    read = plan_from_data(plan_to_data(plan, with_explicit=False), plan.to_arrow())
    assert read.content_hash() == plan.content_hash()


def test_it_starts_with_hashing_and_a_plan_lowers_the_imbalance():
    keys, one = zipf_keys(10_000), splitter()
    hashing = Plan(Scheme.HYBRID, 4, KeyType.STRING).partitioner()
    assert (one.route(keys) == hashing.channels_of(keys)).all()
    one.observe(keys)
    before, proposal = imbalance(one, keys), one.propose()
    assert imbalance(one, keys) == before  # a proposal changes nothing
    one.adopt(proposal)
    assert one.plan is proposal.plan
    assert imbalance(one, keys) < before
    assert (one.route(keys) == proposal.plan.partitioner().channels_of(keys)).all()


@given(st.lists(st.integers(1, 2500), min_size=1, max_size=6), st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_batches_decide_nothing(sizes, seed):
    keys, cut, whole = zipf_keys(8000, seed), splitter(), splitter()
    whole.observe(keys)
    first = 0
    for size in sizes:
        cut.observe(keys.slice(first, size))
        first += size
    cut.observe(keys.slice(first).dictionary_encode())
    assert cut.propose().plan.content_hash() == whole.propose().plan.content_hash()


def test_keys_one_by_one_are_counted_and_routed_as_in_batches():
    keys, batched, single = zipf_keys(6000), splitter(), splitter()
    batched.observe(keys)
    for key in keys.to_pylist():
        single.observe_key(key)
    assert batched.propose().plan.content_hash() == single.propose().plan.content_hash()
    batched.adopt(batched.propose())
    some = keys.slice(0, 200)
    assert [batched.route_key(key) for key in some.to_pylist()] == batched.route(some).tolist()


def test_it_counts_as_the_sliding_counter_and_builds_as_build_does():
    keys, one = zipf_keys(9000), splitter()
    counter = SlidingLossyCounter(1e-3, pa.string(), ROWS)
    counter.update(keys)
    one.observe(keys)
    counted = counter.summary().frequencies(1e-3)
    assert one.counted().keys.equals(counted.keys)
    made = build_plan(counted, Recipe(max_pins=20), 4, previous=one.plan)
    assert one.propose().plan.content_hash() == made.content_hash()


def test_what_was_long_ago_is_forgotten():
    one = splitter()
    one.observe(zipf_keys(6000))
    one.observe(zipf_keys(12_000, shift=150))
    assert "key 150" in one.propose().plan.explicit
    assert one.counted().keys[0].as_py() == "key 150"


def test_weights_and_times():
    minutes = SlidingWindow(Length.parse("10s"))
    one = splitter(window=minutes, weight=Weight.BYTES)
    keys, sizes = pa.array(["small", "large"] * 3000), np.array([1, 50] * 3000)
    one.observe(keys, sizes, np.arange(6000) * 1000)
    assert one.counted().keys.to_pylist() == ["large", "small"]
    with pytest.raises(ValueError, match="needs a weight for each row"):
        one.observe(keys)
    with pytest.raises(BadInput, match="rows must be in time order"):
        one.observe(keys, sizes, np.arange(6000))


def test_moves_are_the_pinned_keys_whose_channel_changes():
    one = splitter()
    one.observe(zipf_keys(8000))
    one.adopt(one.propose())
    one.observe(zipf_keys(8000, seed=1, shift=40))
    before, proposal = one.plan, one.propose()
    keys, was, is_now, state = proposal.moved
    pinned = {*before.explicit, *proposal.plan.explicit}
    old, new = before.partitioner(), proposal.plan.partitioner()
    assert {*keys.to_pylist()} == {key for key in pinned if old.channel_of(key) != new.channel_of(key)}
    assert [old.channel_of(key) for key in keys.to_pylist()] == was.tolist()
    assert [new.channel_of(key) for key in keys.to_pylist()] == is_now.tolist()
    assert (np.diff(state) <= 0).all()
    assert state.sum() == pytest.approx(proposal.moved_state)  # the base is as it was
    assert [row["key"] for row in proposal.moves().records()] == keys.to_pylist()


def test_other_channels():
    one = splitter()
    one.observe(zipf_keys(8000))
    one.adopt(one.propose())
    one.adopt(one.propose(6))
    assert one.plan.channels == 6
    assert set(one.route(zipf_keys(8000)).tolist()) == set(range(6))


def test_plans_are_adopted_in_order():
    one = splitter()
    one.observe(zipf_keys(8000))
    first, second = one.propose(), one.propose(5)
    one.adopt(first)
    with pytest.raises(UsageError, match="follows another plan than the one in force; propose again"):
        one.adopt(second)
    with pytest.raises(UsageError, match="observe rows first"):
        splitter().propose()


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [
        (Plan(Scheme.HYBRID, 5, KeyType.STRING), "5 workers, not 4"),
        (Plan(Scheme.HYBRID, 4, KeyType.INT64), "int64 keys, not string"),
        (Plan(Scheme.HYBRID, 4, KeyType.STRING, base=Engine.KAFKA), "base kafka"),
    ],
)
def test_a_plan_of_another_kind_is_refused(plan, wrong):
    with pytest.raises(UsageError, match=wrong):
        splitter(plan=plan)


def test_single_keys_follow_the_plan_in_force_and_few_are_remembered(monkeypatch):
    monkeypatch.setattr("adapt.core.partitioning.loop.splitter._REMEMBERED", 7)
    one, keys = splitter(), zipf_keys(2000)
    one.observe(keys)
    some = keys.slice(0, 100)
    for _ in range(2):
        assert [one.route_key(key) for key in some.to_pylist()] == one.route(some).tolist()
        assert len(one._routing[1]) <= 7
        one.adopt(one.propose())


def test_keys_of_another_type_are_refused():
    one = splitter()
    for wrong in (one.observe, one.route):
        with pytest.raises(UsageError, match="was made for string keys"):
            wrong(pa.array([1, 2]))
    for key in (1, b"a"):
        with pytest.raises(UsageError, match="was made for string keys"):
            one.route_key(key)
    one.observe(pa.nulls(5))
    assert one.route(pa.nulls(2)).tolist() == [one.route_key(None)] * 2


def test_many_threads_lose_no_row():
    one, keys = splitter(window=SlidingWindow(Length(10**6, in_rows=True))), zipf_keys(5000)

    def work():
        for at in range(0, 5000, 500):
            one.observe(keys.slice(at, 500))
            one.route(keys)
            one.observe_key("single")
            one.counted()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert one.counted().total == 4 * 5010


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=5), st.sampled_from(Weight), st.booleans(), st.integers(0, 5)
)
@settings(max_examples=10, deadline=None)
def test_a_saved_splitter_continues_as_the_one_that_was_saved(sizes, weight, timed, seed):
    window = SlidingWindow(Length.parse("2s")) if timed else ROWS
    keys, chance, at = zipf_keys(20_000, seed % 6), np.random.default_rng(seed), 0
    one = saved = splitter(window=window, weight=weight)
    for size in sizes:
        end = at + size
        weights = None if weight is Weight.COUNT else chance.integers(0, 50, size)
        weights = weights / 7 if weight is Weight.COST else weights
        given = keys.slice(at, size), weights, np.arange(at, end) * 1000 if timed else None
        for each in (one, saved) if one is not saved else (one,):
            each.observe(*given)
            each.observe_key("single", 1, end * 1000)
            each.adopt(each.propose())
        saved, at = Splitter.from_text(one.to_text()), end
        assert saved.to_text() == one.to_text()
        assert saved.propose().plan.content_hash() == one.propose().plan.content_hash()
    assert (saved.route(keys) == one.route(keys)).all()
    assert saved.is_full == one.is_full


@pytest.mark.parametrize(
    ("key_type", "recipe"),
    [
        (
            KeyType.STRING,
            Recipe(resources=Resources.parse("CLL"), hash=HashName.XXHASH64, max_pins=5),
        ),
        (KeyType.INT64, Recipe(base=Engine.KAFKA, resources=Resources.parse("CLQ", (2, 3, 2), 0.2))),
        (KeyType.BINARY, Recipe(base=Engine.kinesis_over((0, 5, 2**100, 2**127)))),
        (KeyType.STRING, Recipe(constraints=Constraints((1, 2, 1, 1), {"user": 3, None: 1}, None))),
        (KeyType.INT64, Recipe(Engine.SPARK)),
        (KeyType.STRING, Recipe(Scheme.BOUNDED, cap=1.03)),
    ],
)
def test_every_recipe_is_saved(key_type, recipe, tmp_path):
    keys = pa.array(["user", "other \N{GRINNING FACE}", "", None] * 50)
    if key_type is KeyType.INT64:
        keys = pa.array([7, -(2**63), 0, None] * 50)
    one = Splitter(4, recipe, window=ROWS, epsilon=1e-3, key_type=key_type)
    one.observe(keys.cast(pa.binary()) if key_type is KeyType.BINARY else keys)
    write_splitter(one, tmp_path / "saved")
    again = read_splitter(tmp_path / "saved")
    assert again.to_text() == one.to_text()
    again.adopt(again.propose())
    one.adopt(one.propose())
    assert again.plan.content_hash() == one.plan.content_hash()
    assert read_splitter(tmp_path / "saved", recipe).propose().plan.content_hash() == one.plan.content_hash()


def test_what_is_no_saved_splitter_is_refused_in_a_sentence(tmp_path):
    one, file = splitter(), tmp_path / "saved"
    one.observe(zipf_keys(3000))
    one.adopt(one.propose())
    text = one.to_text()
    older = unsealed(text)
    for damaged, said in (
        (b"adapt.plan/1", "not a saved splitter"),
        (text.replace(b"adapt.splitter/1", b"adapt.splitter/2"), "saved in version 2"),
        (text[:-9], "cut off"),
        (text.replace(b"\nkey 0 ", b"\nkey 1 ", 1), "does not match its seal"),
        (older.replace(b"\nkey 0 ", b"\nkey 1 ", 1), "does not match its content_hash"),
        (older.replace(b'"name":"murmur3"', b'"name":"md5"'), "unknown 'md5'"),
        (older.replace(b"\nepsilon", b"\nepsilons"), "a damaged splitter"),
        (older.replace(b"\nnew ", b"\nnew x", 1), "a damaged splitter"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(BadInput, match=f"^{file}: .*{said}") as error:
            read_splitter(file)
        assert "\n" not in str(error.value)
    file.write_bytes(text)
    with pytest.raises(UsageError, match=r"base consistent with hash murmur3, not consistent with xxhash64"):
        read_splitter(file, Recipe(hash=HashName.XXHASH64))
    with pytest.raises(UsageError, match="was made for string keys"):
        read_splitter(file).observe(pa.array([1]))
    old = one.propose()
    one.adopt(one.propose(5))
    with pytest.raises(UsageError, match="follows another plan"):
        read_splitter_of(one, file).adopt(old)


def unsealed(text):
    return re.sub(rb"\nseal .*", b"", text)


def read_splitter_of(one, file):
    write_splitter(one, file)
    return read_splitter(file)


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    """Runs a program over the splitter in Java."""
    try:
        home = find_java_home()
    except AdaptError as error:
        pytest.skip(f"no Java: {error}")
    if shutil.which("javac", path=os.fspath(home / "bin")) is None:
        pytest.skip("a runtime without a compiler: the splitter in Java needs a JDK")
    folder = tmp_path_factory.mktemp("java")
    (folder / "Splitter.java").write_bytes(source_of(SPLITTER))
    programs = [folder / "Splitter.java", Path(__file__).with_name("Follow.java")]
    subprocess.run([home / "bin" / "javac", "-Xlint:all", "-Werror", "-d", folder, *programs], check=True)

    def run(*given):
        options = ["-XX:+UseSerialGC", "-Xshare:auto", "-cp", folder]
        command = [home / "bin" / "java", *options, "Follow", *map(str, given)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


BYTES = {KeyType.STRING: str.encode, KeyType.INT64: lambda key: key.to_bytes(8, "little", signed=True)}


@pytest.mark.parametrize(
    ("key_type", "hash", "rows", "plans"),
    [(KeyType.STRING, HashName.MURMUR3, 24_000, 3)]
    if not os.environ.get("ADAPT_SOAK")
    else [(each, hash, 1_000_000, 100) for each in BYTES for hash in HashName],
)
def test_java_counts_plans_and_routes_to_the_last_bit(java, tmp_path, promise, key_type, hash, rows, plans):
    chance, batch = np.random.default_rng(rows), rows // plans
    numbers = [chance.zipf(1.05 + 0.3 * chance.random(), batch) % 10**6 + part // 3 * 7 for part in range(plans)]
    keys = [None if key % 997 == 0 else key for key in np.concatenate(numbers).tolist()]
    if key_type is KeyType.STRING:  # of all lengths, and with letters that JSON escapes
        keys = [None if key is None else f"{key}" + 'é\n"\\\t\x01' * (key % 5 == 0) + "x" * (key % 40) for key in keys]
    column = pa.array(keys, pa.string() if key_type is KeyType.STRING else pa.int64())
    window = SlidingWindow(Length(max(rows // 3, 8000), in_rows=True))
    one = Splitter(8, Recipe(hash=hash), window=window, key_type=key_type)
    one.observe(column.slice(0, batch // 2))
    write_splitter(one, tmp_path / "saved")
    raw = [None if key is None else BYTES[key_type](key) for key in keys]
    packed = [struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key for key in raw]
    (tmp_path / "keys").write_bytes(b"".join(packed))
    channels = chance.integers(6, 11, plans).tolist()
    told = java(tmp_path / "saved", tmp_path / "keys", batch, *channels)
    assert told.returncode == 0, told.stderr
    wanted = []
    for part, number in enumerate(channels):
        one.observe(column.slice(part * batch, batch))
        proposal = one.propose(number)
        one.adopt(proposal)
        moved = zip(*(each.tolist() for each in proposal.moved[1:]), strict=True)
        wanted += [plan_text(one.plan).decode(), *(f"move {was} {to} {state}\n" for was, to, state in moved)]
        routed = one.route(column.slice(0, (part + 1) * batch)).astype(np.uint64)
        powers = np.uint64(31) ** np.arange(len(routed), dtype=np.uint64)[::-1]
        wanted.append(f"routes {(routed * powers).sum().astype(np.int64)}\n")
    assert told.stdout == "".join(wanted)
    promise("java-splitter").checked(plans)
    lines, own = (unsealed(text).split(b"\n") for text in ((tmp_path / "saved.java").read_bytes(), one.to_text()))
    assert sorted(line for line in lines if line[:5] != b"plan ") == sorted(
        line for line in own if line[:5] != b"plan "
    )
    assert read_splitter(tmp_path / "saved.java").propose().plan.content_hash() == one.propose().plan.content_hash()


def test_java_refuses_what_it_does_not_know(java, tmp_path):
    one, file = splitter(), tmp_path / "saved"
    text = one.to_text()
    for changed, said in (
        (text.replace(b"splitter/1", b"splitter/2"), "not a saved splitter of version 1"),
        (text.replace(b"\nnext 0", b"\nnext 1"), "changed after it was saved"),
        (unsealed(text).replace(b"\nhash murmur3", b"\nhash md5"), "saved with hash md5"),
        (unsealed(text).replace(b"\nconstruction level", b"\nconstruction scan"), "saved with construction scan"),
    ):
        file.write_bytes(changed)
        told = java(file, file, 1, 4)
        assert told.returncode == 1
        assert f"IllegalArgumentException: {file}: {said}" in told.stderr
        assert ("a saved splitter has no seal" in told.stderr) is said.startswith("saved with")
