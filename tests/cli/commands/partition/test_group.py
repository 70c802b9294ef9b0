"""`adapt partition` over counts in a CSV: plans, comparisons, differences, routes; no Spark anywhere."""

import io
import json
import subprocess
import sys

import pyarrow as pa
import pytest

from adapt.cli.terminal.output import MOST_ROWS
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTIONS
from adapt.core.partitioning.splitting.names import REMEDIES
from adapt.traces import routing
from adapt.traces.store.plans import read_plan

METRICS = (
    "imbalance best_possible r_s r_c r_n r_best r_best_pinned b b_best m b(1+m) keys_moved state_moved"
    " pinned_keys empty_channels"
).split()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder but for counts.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\n" + "".join(f"k{n},{3000 // n}\n" for n in range(1, 300)))
    return tmp_path


def document(said):
    """The one JSON document on stdout."""
    return json.loads(said.out, parse_constant=lambda name: pytest.fail(name))


def test_build_prints_the_explicit_map_and_the_metrics(adapt, here):
    adapt.done("partition", "build", "counts.csv", "--channels", 2, "-o", "P2")
    line = "partition build counts.csv --scheme hybrid --construction scan --channels 3 --from P2 --format json"
    plan = document(adapt.done(*line.split()))
    assert (plan["schema"], plan["base"], plan["hash"]) == ("adapt.plan/2", "spark", None)
    assert (plan["scheme"], plan["construction"], plan["channels"]) == ("hybrid", "scan", 3)
    assert set(METRICS) <= plan["metrics"].keys()
    assert plan["explicit"]["k1"] in range(3)
    assert plan["parent"] == read_plan(here / "P2").content_hash()
    assert plan["metrics"]["keys_moved"] > 0
    theta = 0.2 / (1 + 1.2 / 2)
    assert plan["theta"] == pytest.approx([theta] * 3)
    assert plan["delta"] == pytest.approx(0.1 * theta / 3)
    counts = {f"k{n}": 3000 // n for n in range(1, 300)}
    assert set(plan["explicit"]) == {
        key for key, count in counts.items() if count >= plan["delta"] * sum(counts.values())
    }


def test_compare_prints_one_document_with_every_field(adapt, here):
    said = adapt.done("partition", "compare", "counts.csv", "--channels", "1:10", "--format", "json")
    compared = document(said)
    assert compared["schema"] == "adapt.comparison/2"
    chains = [("spark", None), ("uniform", None), ("consistent", None)]
    chains += [*(("hybrid", name) for name in DEFAULT_CONSTRUCTIONS)]
    chains += [(way.value, None) for way in REMEDIES]  # the heaviest key is too much for a tenth of the load
    assert [(row["scheme"], row["construction"], row["channels"]) for row in compared["rows"]] == [
        (*chain, channels) for chain in chains for channels in range(1, 11)
    ]
    assert compared["verdict"]["class"] == "needs splitting"
    for row in compared["rows"]:
        assert {"scheme", "construction", "channels", "build_s", *METRICS} <= row.keys()
        assert row["imbalance"] >= (1 if row["merge_tuples"] else row["best_possible"]) >= 1
    assert "299 keys" in said.err
    assert adapt.done("-q", "partition", "compare", "counts.csv", "--channels", "2").err == ""


def test_compare_takes_schemes_that_split_keys_and_refuses_unknown_ones(adapt, here):
    line = ("partition", "compare", "counts.csv", "--channels", "4", "--scheme", "d-choices", "--scheme", "uniform")
    assert {row["scheme"] for row in adapt.json(*line)["rows"]} == {
        "spark",
        "d-choices",
        "uniform",
    }
    said = adapt.refused(2, "partition", "compare", "counts.csv", "--channels", "4", "--scheme", "jmp")
    assert "did you mean 'jump'? Available: " in said


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("--engine kafka", "kafka"),
        ("--engine flink:max-parallelism=64", "flink"),
        ("--engine consistent:hash=xxhash64,replicas=20", None),
    ],
)
def test_other_keys_stay_as_the_engine_has_them(adapt, here, given, base):
    line = ("partition", "build", "counts.csv", "--channels", 3, *given.split(), "--format", "json")
    assert document(adapt.done(*line)).get("base") == base


def test_a_utility_is_refused_where_nothing_minimizes_it(adapt, here):
    line = ("partition", "build", "counts.csv", "--channels", 3, "--utility", "ATM")
    assert "--utility has no effect with --construction level" in adapt.refused(2, *line)
    made = adapt.json(*line, "--construction", "scan")
    assert made["parameters"]["utility"] == "ATM"


def test_a_tolerance_is_suggested_without_counting_anything(adapt):
    line = ("partition", "tolerance", "--channels", 4, "--total", 10, "--capacity", 3, "--format", "json")
    suggested = document(adapt.done(*line))
    assert suggested["schema"] == "adapt.tolerance/1"
    assert suggested["tolerances"][0]["tolerance"] == pytest.approx(9 / 7)
    assert "give --utilization" in adapt.refused(2, "partition", "tolerance")


@pytest.mark.parametrize("command", ["build", "compare"])
def test_the_limit_of_the_verdict_is_not_the_tolerance_of_constructions(adapt, here, command):
    line = ("partition", command, "counts.csv", "--channels", 3, "--format", "json")
    for limit, more in ((1.2, ()), (1.2, ("--tolerance", 2)), (1.5, ("--max-imbalance", 1.5))):
        assert limit in document(adapt.done(*line, *more))["verdict"].values()


def test_the_same_command_twice_gives_the_same_bytes(here):
    """In processes of their own, whose built-in hashes differ."""
    line = "partition compare counts.csv --channels 1:4 --format json"
    program = "import sys; from adapt.cli.main import main; main(sys.argv[1:])"
    told = [
        subprocess.run(
            [sys.executable, "-c", program, *line.split()],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    documents = [json.loads(each) for each in told]
    for each in documents:
        for row in each["rows"]:
            assert (row.pop("build_s") is None) == (row["scheme"] == "spark")
    assert json.dumps(documents[0]) == json.dumps(documents[1])


def test_outputs_are_not_replaced_unless_that_is_said(adapt, here):
    adapt.done("partition", "build", "counts.csv", "--channels", 2, "-o", "a.plan")
    first = (here / "a.plan").read_bytes()
    build = ("partition", "build", "counts.csv", "--channels", 3, "-o", "a.plan")
    assert "a.plan exists; add --force" in adapt.refused(4, *build)
    assert (here / "a.plan").read_bytes() == first
    assert "wrote a.plan" in adapt.done(*build, "--force").err
    assert read_plan(here / "a.plan").channels == 3
    adapt.done("partition", "compare", "counts.csv", "--channels", 2, "-o", "a.plans")
    assert "--force" in adapt.refused(4, "partition", "compare", "counts.csv", "--channels", 2, "-o", "a.plans")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("a,1\nb,-2\n", "line 2: the count must be a number, at least 0 (got '-2')"),
        ("a,1\nb\n", "line 2: 1 fields instead of 2"),
        ("key,count\n", "no rows"),
    ],
)
def test_bad_counts_are_refused_with_their_line(adapt, here, rows, told):
    (here / "bad.csv").write_text(rows)
    assert told in adapt.refused(3, "partition", "build", "bad.csv", "--channels", 2, "-o", "x.plan")
    assert not (here / "x.plan").exists()


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        (3, "build none.csv --channels 2", "does not exist; give a trace, counted keys, or a table of key,count"),
        (3, "build counts.csv --channels 2 --from counts.csv", "is not a plan"),
        (3, "build counts.csv --channels 2 --from a.plan --engine consistent:hash=xxhash64", "murmur3"),
        (3, "route counts.csv", "is not a plan"),
        (3, "route a.plans", "hybrid-scan.plan"),
        (3, "route a.plan none.txt", "none.txt"),
        (3, "diff a.plans a.plan a.plan", "is a comparison; give a trace"),
        (2, "build counts.csv --channels 2 --weight cost", "--weight needs a trace"),
        (4, "build counts.csv --channels 2 -o none/x.plan", "does not exist; create it"),
        (4, "compare counts.csv --channels 2 -o counts.csv --force", "is a file"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(adapt, here, code, line, told):
    adapt.done("partition", "build", "counts.csv", "--channels", 2, "--engine", "consistent", "-o", "a.plan")
    adapt.done("partition", "compare", "counts.csv", "--channels", 2, "-o", "a.plans")
    before = sorted(here.rglob("*"))
    assert told in adapt.refused(code, "partition", *line.split())
    assert sorted(here.rglob("*")) == before


class TestDiff:
    def test_the_bill_agrees_with_itself(self, adapt, here):
        for channels in (2, 3):
            adapt.done("partition", "build", "counts.csv", "--channels", channels, "-o", f"{channels}.plan")
        line = ("partition", "diff", "counts.csv", "2.plan", "3.plan")
        bill = adapt.json(*line)
        assert bill["schema"] == "adapt.difference/2"
        assert sum(map(sum, bill["keys_moved_between"])) == bill["keys_moved"] == bill["after"]["keys_moved"]
        assert sum(map(sum, bill["state_moved_between"])) == pytest.approx(bill["state_moved"])
        assert [len(bill["keys_moved_between"]), len(bill["keys_moved_between"][0])] == [2, 3]
        for format in ("table", "csv", "md"):
            assert "Hot keys that move" in adapt.done(*line, "--format", format).out


class TestRoute:
    @pytest.fixture
    def plan(self, adapt, here):
        """The path of a plan for keys of a type."""

        def make(key_type):
            rows = {"string": "a,5\n,2\nk é,1\n", "int64": "7,5\n-1,2\n", "binary": "00ff,5\n,2\n"}[key_type]
            (here / "few.csv").write_text(rows)
            path = here / f"{key_type}.plan"
            adapt.done("partition", "build", "few.csv", "--channels", 5, "--key-type", key_type, "-o", path)
            return path

        return make

    @staticmethod
    def told(path, keys, lines):
        """What should be told of these keys, written as these lines."""
        partitioner: Partitioner = read_plan(path).partitioner()
        return "".join(f"{line}\t{partitioner.channel_of(key)}\n" for line, key in zip(lines, keys, strict=True))

    def test_text_keys_are_lines_as_they_stand_but_for_their_end(self, adapt, here, plan):
        path = plan("string")
        (here / "keys").write_bytes("a\r\n\r\n\nk é\n a\tb \nlast".encode())
        keys = ["a", "", "", "k é", " a\tb ", "last"]
        assert adapt.done("partition", "route", path, "keys").out == self.told(path, keys, keys)

    def test_whole_numbers_are_decimal_and_bytes_are_hex(self, adapt, here, plan):
        path = plan("int64")
        (here / "keys").write_text("7\n-1\n9223372036854775807\n0\n")
        numbers = [7, -1, 2**63 - 1, 0]
        assert adapt.done("partition", "route", path, "keys").out == self.told(path, numbers, numbers)
        path = plan("binary")
        (here / "keys").write_text("00ff\n\n0a0d\n")
        keys = [b"\x00\xff", b"", b"\n\r"]
        assert adapt.done("partition", "route", path, "keys").out == self.told(path, keys, ["00ff", "", "0a0d"])

    @pytest.mark.parametrize("given", [[], ["-"]])
    def test_keys_come_from_standard_input_too(self, adapt, here, plan, monkeypatch, given):
        path = plan("string")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
        assert adapt.done("partition", "route", path, *given).out == self.told(path, ["a", "b"], ["a", "b"])

    def test_a_byte_order_mark_is_no_part_of_the_first_key(self, adapt, here, plan, monkeypatch):
        path = plan("string")
        (here / "keys").write_bytes("\ufeffa\n\ufeffb\n".encode())
        for size in (1, routing.CHUNK_BYTES):
            monkeypatch.setattr(routing, "CHUNK_BYTES", size)
            told = adapt.done("partition", "route", path, "keys").out
            assert told == self.told(path, ["a", "\ufeffb"], ["a", "\ufeffb"])
        (here / "keys").write_bytes("\ufeff".encode())
        assert adapt.done("partition", "route", path, "keys").out == ""

    @pytest.mark.parametrize(
        ("key_type", "data", "told"),
        [
            ("string", b"a\n\xff\n", "keys line 2: not UTF-8"),
            ("int64", b"1\n9223372036854775808\n", "keys line 2"),
            ("int64", b"1\n2\n0x10\n007\n", "keys line 3: int64 keys must be 64-bit integers in decimal (got '0x10')"),
            ("int64", b"1\n\n", "keys line 2"),
            ("binary", b"00\nzz\n", "keys line 2"),
        ],
    )
    def test_a_line_that_is_no_key_is_named(self, adapt, here, plan, key_type, data, told):
        path = plan(key_type)
        (here / "keys").write_bytes(data)
        assert told in adapt.refused(3, "partition", "route", path, "keys")

    def test_many_lines_go_through_in_chunks(self, adapt, here, plan, monkeypatch):
        path = plan("string")
        keys = [f"key {number}" for number in range(5_000)]
        (here / "keys").write_text("\n".join(keys))
        expected = read_plan(path).partitioner().channels_of(pa.array(keys)).tolist()
        taken = []

        class Counted(io.FileIO):
            def read(self, size=-1):
                taken.append(size)
                return super().read(size)

        for size in (1, 37, 1024):
            monkeypatch.setattr(routing, "CHUNK_BYTES", size)
            taken.clear()
            with Counted(here / "keys") as lines:
                plan_read = read_plan(path)
                told = b"".join(routing.routed_lines(lines, plan_read.partitioner(), plan_read.key_type, "keys"))
            assert told.decode() == "".join(f"{k}\t{c}\n" for k, c in zip(keys, expected, strict=True))
            assert set(taken) == {size}
            keys, expected = keys[-200:], expected[-200:]
            (here / "keys").write_text("\n".join(keys))


def test_neither_counts_nor_plans_nor_reports_load_spark(here):
    """Whole processes, so that what was loaded before does not hide what they load."""
    program = (
        "import sys; from adapt.cli.main import run; code = run(sys.argv[1:]);"
        "print(*(n for n in ('pyspark', 'py4j') if n in sys.modules), code, file=sys.stderr)"
    )
    (here / "keys").write_text("k1\n")
    for line in (
        "-q partition build counts.csv --channels 3 -o a.plan",
        "-q partition route a.plan keys",
        "-q report a.plan --html a.html",
    ):
        said = subprocess.run([sys.executable, "-c", program, *line.split()], capture_output=True, text=True)
        assert said.stderr == "0\n", line


def test_programs_get_every_row_and_people_the_first(adapt, here):
    (here / "counts.csv").write_text("".join(f"k{n},{100_000 + n}\n" for n in range(100)))
    build = "partition build counts.csv --channels 40 --scheme hybrid --max-pins 90 -o a.plan --force".split()
    explicit = adapt.json(*build)["explicit"]
    assert len(explicit) > MOST_ROWS
    csv = adapt.done(*build, "--format", "csv").out
    assert csv.count("\nk") - csv.count("\nkey") == len(explicit)
    assert f"and {len(explicit) - MOST_ROWS} more rows (use --format csv for all)" in adapt.done(*build, "--all").out
    adapt.done("partition", "build", "counts.csv", "--channels", 39, "--scheme", "uniform", "-o", "b.plan")
    diff = "partition diff counts.csv a.plan b.plan".split()
    told = adapt.json(*diff)
    assert told["keys_moved"] == len(told["hot_keys"]) > MOST_ROWS
    assert told["hot_keys_cut"] is False
    csv = adapt.done(*diff, "--format", "csv").out
    assert csv.count("\nk") - csv.count("\nkey") == told["keys_moved"]
    assert "more rows (use --format csv for all)" in adapt.done(*diff).out


def test_channels_beyond_reason_are_refused_at_once(adapt, here):
    assert "from 1 to 1,000,000" in adapt.refused(2, "partition", "build", "counts.csv", "--channels", 99_999_999_999)
