"""The golden vectors against libraries of others, and the reader in Java against the vectors and many keys."""

import json
import shutil
import subprocess

import mmh3
import numpy as np
import pyarrow as pa
import pytest
import xxhash

from adapt.core.engines.any_language.export import READER
from adapt.core.engines.any_language.plan_text import plan_text
from adapt.core.engines.names import Engine
from adapt.core.errors import AdaptError
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.partitioning.plans.plan import Plan, plan_from_data
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.traces.deploy.export import source_of
from adapt.traces.spark.java import find_java_home
from tests.core.engines.any_language.plan_vectors import KEYS, PAGE, in_hex, plans, vectors
from tests.tiers import SOAK

GOLDEN = json.loads(PAGE.read_text())
READ = plans()
HASHED = [plan for plan in READ if not isinstance(plan.hashing, Engine)]
MOST_LINES = 245
RANDOM = 10_000 if SOAK else 3_334
"""Random keys of each of the three types."""


def test_the_vectors_in_the_documentation_are_those_of_the_program():
    assert PAGE.read_text() == vectors(), "run: python -m tests.core.engines.any_language.plan_vectors"


def test_the_hashes_are_those_of_other_libraries():
    checked = 0
    for each in GOLDEN["vectors"]:
        keys = [bytes.fromhex(key or "") for key in GOLDEN["keys"][each["plan"]["key_type"]]]
        match (each["plan"].get("hash") or {}).get("name"):
            case "murmur3":
                words = [mmh3.hash64(key, signed=False) for key in keys]
                assert each["hashes"] == [f"{h1:016x}{h2:016x}" for h1, h2 in words]
            case "xxhash64":
                assert each["hashes"] == [xxhash.xxh64_hexdigest(key, 42) for key in keys]
            case _:
                assert each["plan"].get("base", each["plan"]["scheme"]) in list(
                    Engine
                )  # held against the engines in tests/core/hashing
                continue
        checked += 1
    assert checked == len(HASHED)


def test_a_remainder_can_be_taken_by_hand():
    for each in GOLDEN["vectors"]:
        if each["plan"]["scheme"] == Scheme.UNIFORM:
            signed = each["plan"]["hash"]["name"] == "xxhash64"
            numbers = [int(hash, 16) - (2**64 if signed and hash[0] in "89abcdef" else 0) for hash in each["hashes"]]
            assert each["channels"] == [number % 7 for number in numbers]


def test_both_forms_of_a_plan_are_the_same_plan():
    for each in GOLDEN["vectors"]:
        assert plan_text(plan_from_data(each["plan"])).decode() == each["text"]


def test_the_text_in_the_documentation_is_that_of_a_plan():
    page = PAGE.with_name("plan-format.md").read_text()
    sample = Plan(Scheme.HYBRID, 8, KeyType.STRING, explicit={None: 5, "hot": 3})
    assert page.partition("```text\n")[2].partition("```")[0] == plan_text(sample).decode()


def test_the_reader_is_short():
    lines = source_of(READER).decode().splitlines()
    assert len(lines) < MOST_LINES
    assert max(map(len, lines)) <= 120


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    """Gives the channels of keys in hex by each of some plans, in one run of the reader as a single file."""
    try:
        runtime = find_java_home() / "bin" / "java"
    except AdaptError as error:
        pytest.skip(f"no Java: {error}")
    if shutil.which("javac", path=str(runtime.parent)) is None and not (runtime.parent / "javac").exists():
        pytest.skip("a runtime without a compiler: the reader needs a JDK")
    folder = tmp_path_factory.mktemp("reader")
    source = folder / "PlanReader.java"
    source.write_bytes(source_of(READER))

    def run(plans, keys):
        paths = []
        for number, plan in enumerate(plans):
            paths.append(folder / f"{number}.txt")
            paths[-1].write_bytes(plan if isinstance(plan, bytes) else plan_text(plan))
        asked = "".join(f"{'null' if key is None else key}\n" for key in keys)
        options = ["-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        told = subprocess.run(
            [runtime, *options, source, *paths], input=asked, capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr
        return [list(map(int, column)) for column in zip(*map(str.split, told.stdout.splitlines()), strict=True)]

    return run


def many(key_type):
    """Nasty keys, and random ones of every length to 80."""
    chance = np.random.default_rng(11)
    match key_type:
        case KeyType.STRING:
            points = np.array([*range(32, 127), 0xE9, 0x43A, 0x65E5, 0x1F600])
            more = ["".join(map(chr, chance.choice(points, length % 80))) for length in range(RANDOM)]
        case KeyType.BINARY:
            more = [chance.bytes(length % 80) for length in range(RANDOM)]
        case _:
            limit = 1 << (int(key_type.removeprefix("int")) - 1)
            more = chance.integers(-limit, limit - 1, RANDOM, endpoint=True).tolist()
    return pa.array([*KEYS[key_type], *more], ARROW_TYPES[key_type])


@pytest.mark.parametrize("key_type", KEYS if SOAK else [KeyType.STRING, KeyType.INT32])
def test_java_agrees_on_every_vector_and_on_ten_thousand_random_keys(java, key_type):
    asked, keys = [plan for plan in READ if plan.key_type is key_type], many(key_type)
    told = java(asked, in_hex(keys))
    golden = [each for each in GOLDEN["vectors"] if each["text"] in {plan_text(plan).decode() for plan in asked}]
    assert len(golden) == len(asked) == len(told)
    for plan, found, each in zip(asked, told, golden, strict=True):
        assert found[: len(each["channels"])] == each["channels"], plan
        assert found == plan.partitioner().channels_of(keys).tolist(), plan


def test_java_refuses_a_plan_that_was_cut_off_or_has_other_replicas(java):
    with pytest.raises(AssertionError, match="bad plan"):
        java([plan_text(READ[0])[:-4]], ["61"])
    ring = next(text for text in map(plan_text, READ) if b"replicas " in text)
    with pytest.raises(AssertionError, match=r"replicas must be one number \(got a list\); build it again"):
        java([ring.replace(b"replicas ", b"replicas 7 ")], ["61"])
