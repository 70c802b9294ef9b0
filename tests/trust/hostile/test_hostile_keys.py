"""Keys that mean something to a terminal, shell, browser or parser come out as they went in, or escaped."""

import csv
import io
import json
import random
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.core.values import visible
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.plans import read_plan, write_plan
from tests.tiers import SEED, SOAK, soak

PIECES = [
    *(
        "=cmd|' /C calc'!A0",
        "+1+1",
        "-2+3",
        "@SUM(A1)",
        "\uff1d1",
        "'",
        '"',
        '""',
        "`id`",
        "$(id)",
        ";rm -rf /",
        "&&",
        "|",
    ),
    *(
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</script>",
        "<!--",
        "-->",
        "]]>",
        "&lt;",
        "{{7*7}}",
    ),
    *(
        "\x00",
        "\n",
        "\r\n",
        "\t",
        "\x1b[31mred",
        "\x7f",
        "\x85",
        "\u2028",
        "\u202e\u202d",
        "\u200b",
        "\ufeff",
        "\ud7ff",
    ),
    *("a,b", "a;b", "a|b", "\\", "\\n", "\\u0041", "%s%n", "{0}", "${x}", "# x", "[a](javascript:b)", "**b**", "_i_"),
    *(" ", "  x  ", "null", "None", "NaN", "true", "0", "-0", "1e5", "007", "2024-01-01", "../../x", "__proto__", "~0"),
    *(
        "é",
        "e\u0301",
        "ключ",
        "😀",
        "👩\u200d👧",
        "\U000e0001",
        "' OR '1'='1",
        "/*",
        "*/ --",
        "case when end",
        "x" * 9000,
    ),
]
KEYS = PIECES + ["".join(random.Random(f"{SEED} {at}").sample(PIECES, 3)) for at in range(300 if SOAK else 20)]
UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028\u202d\u202e\ufeff\ud800-\udfff]")
"""What no text for people may hold, line ends aside."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    """A trace in which each hostile key has as many rows as its place says, and one of harmless keys beside it."""
    from adapt.cli.main import run

    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, keys in (("x", KEYS), ("harmless", [f"key {at}" for at in range(len(KEYS))])):
            rows = [key for at, key in enumerate(keys) for _ in range(1 + at % 5)]
            times = [1_700_000_000_000_000 + at * 1_000_000 for at in range(len(rows))]
            pq.write_table(
                pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "key": rows, "stream": rows}),
                f"{name}.parquet",
            )
            assert run(f"ingest {name}.parquet --key key --time ts --stream stream -o {name}.trace".split()) == 0
    return folder / "x.trace"


def true_counts() -> dict[str, int]:
    found: dict[str, int] = {}
    for at, key in enumerate(KEYS):
        found[key] = found.get(key, 0) + 1 + at % 5
    return found


def test_keys_are_counted_and_printed_as_they_are(adapt, trace, promise):
    line = ("partition", "count", trace, "--method", "exact", "--all")
    true = true_counts()
    (table,) = (each for each in adapt.json(*line).values() if isinstance(each, list) and each and "key" in each[0])
    assert {row["key"]: row["count_low"] for row in table} == true
    part = adapt.done(*line, "--format", "csv").out.split("# Top keys\n")[1]
    rows = {row["key"]: row for row in csv.DictReader(io.StringIO(part, newline=""))}
    formulas = "=+-@\t\r\uff0b\uff0d\uff1d\uff20"
    known = {f"'{key}" if key[0] in formulas and key != "-0" else key: count for key, count in true.items()}
    assert {key: int(rows[key]["count_low"]) for key in known} == known
    assert not [key for key in rows if key and key[0] in formulas and key != "-0"]
    promise("hostile-keys").checked(2 * len(KEYS))


@pytest.mark.parametrize("form", ["table", "md"])
def test_text_for_people_has_no_control_character_and_no_active_markup(adapt, trace, promise, form):
    lines = [
        ("partition", "count", trace, "--method", "exact", "--all"),
        ("report", trace, "--all"),
        ("lint", trace),
        ("verdict", trace, "--channels", "4", "--engine", "kafka"),
        ("replay", "flux", trace, "--workers", "2"),
        ("advise", "salts", trace, "--parallelism", "4"),
    ]
    for line in lines:
        said = adapt.done(*line, "--format", form)
        assert not UNPRINTABLE.search(said.out + said.err), line
        if form == "md":
            assert not re.search(r"<(?!/?(br|sub|sup)\b)", said.out), line
            for row in (each for each in said.out.splitlines() if each.startswith("| ")):
                assert row.endswith(" |"), row
            widths = [len(re.findall(r"(?<!\\)\|", row)) for row in said.out.splitlines() if row.startswith("| ")]
            heads = {
                len(re.findall(r"\|", row)) for row in said.out.splitlines() if re.fullmatch(r"\|( -+:? \|)+", row)
            }
            assert set(widths) == heads, line
    promise("hostile-keys").checked(len(lines) * len(KEYS))


class Elements(HTMLParser):
    """Elements of a page with the names of their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kinds: set[tuple[str, ...]] = set()
        self.scripts = 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.kinds.add((tag, *sorted(name for name, _ in attrs)))
        self.scripts += tag == "script"


@soak
def test_a_page_has_no_element_that_harmless_keys_do_not_give(adapt, trace, tmp_path, promise):
    pages = []
    for source in (trace, trace.with_name("harmless.trace")):
        out = tmp_path / f"{source.name}.html"
        adapt.done("partition", "build", source, "--channels", "4", "-o", tmp_path / f"{source.name}.plan")
        adapt.done("report", source, tmp_path / f"{source.name}.plan", "--html", out)
        pages.append(Elements(out.read_text(encoding="utf-8")))
    hostile, harmless = pages
    assert hostile.kinds <= harmless.kinds
    assert hostile.scripts == harmless.scripts
    promise("hostile-keys").checked(len(KEYS))


@pytest.fixture
def plan(tmp_path) -> Path:
    """A plan that pins every key."""
    pins = {key: at % 4 for at, key in enumerate(dict.fromkeys(KEYS))}
    path = tmp_path / "x.plan"
    write_plan(Plan(Scheme.HYBRID, 4, KeyType.STRING, base=Engine.KAFKA, explicit=pins), path, Provenance("a test"))
    return path


def test_every_export_holds_the_keys_as_they_are(adapt, plan, tmp_path, promise):
    keys = list(dict.fromkeys(KEYS))
    channels = read_plan(plan).to_arrow().to_pydict()
    assert dict(zip(channels["key"], channels["channel"], strict=True)) == {key: at % 4 for at, key in enumerate(keys)}

    adapt.done("partition", "export", plan, "--to", "plan", "-o", tmp_path / "plain")
    lines = [line.split(" ") for line in (tmp_path / "plain" / "plan.txt").read_text().splitlines()]
    assert {bytes.fromhex(line[2]).decode(): int(line[1]) for line in lines if line[0] == "key" and line[2:]} == {
        key: at % 4 for at, key in enumerate(keys)
    }

    out = tmp_path / "rekeyed"
    adapt.done("partition", "export", plan, "--to", "rekey", "-o", out)
    new = {key: each[0] for key, each in json.loads((out / "rekey.json").read_text("utf-8"))["keys"].items()}
    assert len({*new.values()}) == len(new)
    with (out / "rekey.csv").open(encoding="utf-8", newline="") as file:
        assert {row["key"]: row["replacement"] for row in csv.DictReader(file)} == new
    script = "import json, sys, rekey; print(json.dumps([rekey.rekey(key) for key in json.load(sys.stdin)]))"
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(keys), capture_output=True, text=True, cwd=out, check=True
    )
    assert json.loads(done.stdout) == [new.get(key, key) for key in keys]
    (case,) = re.findall(r"(?s)\nCASE\n.*?\n  ELSE key\nEND\n", (out / "duckdb.sql").read_bytes().decode())
    table = pa.table({"key": keys})
    with duckdb.connect() as connection:
        connection.register("keys", table)
        found = connection.execute(f"SELECT {case} FROM keys").fetchall()
    assert [row[0] for row in found] == [new.get(key, key) for key in keys]
    for each in out.iterdir():
        if each.suffix in (".md", ".sql", ".java", ".py"):
            assert not re.search("[\u202e\u2028\x00\x1b]", each.read_text("utf-8")), each.name
    promise("hostile-keys").checked(5 * len(keys))


def test_routed_keys_are_printed_as_they_are(adapt, plan, tmp_path, promise):
    """Those that fit on a line."""
    keys = [key for key in dict.fromkeys(KEYS) if visible(key) == key and "\n" not in key]
    (tmp_path / "keys").write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")
    routed = adapt.done("partition", "route", plan, tmp_path / "keys").out.splitlines()
    at = {key: place % 4 for place, key in enumerate(dict.fromkeys(KEYS))}
    assert [line.rpartition("\t") for line in routed] == [(key, "\t", str(at[key])) for key in keys]
    promise("hostile-keys").checked(len(keys))
