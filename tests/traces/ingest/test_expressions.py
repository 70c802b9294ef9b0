"""Random expressions of random values: what Arrow makes of them is what Spark makes of them, or it is left to Spark."""

from random import Random

import pyarrow as pa
import pytest

from adapt.traces.ingest.expressions import evaluated, names
from adapt.traces.ingest.sieve import SPARK_KINDS
from adapt.traces.sources.reading.records import InDoubt
from tests.tiers import SEED, SOAK

TEXTS = ("a", "Ab", "", " b ", "a/b/c", "x-1", "7", "42", "-3", "007", "1.5", "ключ", "a\nb", "%", "a_b", '"q"', None)


def table(random: Random, *, odd: bool) -> pa.RecordBatch:
    """Columns of text, of numbers written as text, and of each other type; values that are odd, or usual ones."""
    count = 40
    texts = TEXTS if odd else ("a", "Ab", "x-1", "a/b/c", "q", None)
    wholes = (0, 1, -1, 7, 100, 2**31 - 1, *((2**63 - 1, -(2**63)) if odd else ()), None)
    doubles = (0.0, 1.5, -2.25, 1e10, *((float("nan"), float("inf"), -0.0) if odd else ()), None)
    pick = lambda some, kind: pa.array([random.choice(some) for _ in range(count)], kind)  # noqa: E731
    inner = pa.StructArray.from_arrays([pick(texts, pa.string()), pick(wholes, pa.int64())], ["k", "n"])
    columns = {
        "s": pick(texts, pa.string()),
        "t": pick(texts, pa.string()),
        "d": pick(("7", "42", "-3", "1000000", None, *(("1.5", "", "x") if odd else ())), pa.string()),
        "i": pick(wholes, pa.int64()),
        "n": pick((0, 5, -7, 2**31 - 1, None), pa.int32()),
        "x": pick(doubles, pa.float64()),
        "b": pick((True, False, None), pa.bool_()),
        "e": inner,
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def text(random: Random, depth: int) -> str:
    """An expression of text."""
    if depth == 0 or random.random() < 0.2:
        return random.choice(("s", "t", "s", "d", "e.k", "'a'", "'b c'", '"q"', "`s`"))
    one, two = text(random, depth - 1), text(random, depth - 1)
    return random.choice(
        (
            f"concat({one}, {random.choice((two, number(random, depth - 1), 'n'))})",
            f"{one} || {two}",
            f"concat_ws('-', {one}, {two})",
            f"coalesce({one}, {two}, 'z')",
            f"lower({one})",
            f"upper({one})",
            f"trim({one})",
            f"substr({one}, {random.randint(0, 3)}, {random.randint(0, 3)})",
            f"substring({one}, {random.randint(1, 3)})",
            f"left({one}, {random.randint(0, 3)})",
            f"right({one}, {random.randint(0, 3)})",
            f"split({one}, '{random.choice(('/', '-', '.', 'b/'))}')[{random.randint(0, 2)}]",
            f"string({number(random, depth - 1)})",
            f"cast({truth(random, depth - 1)} as string)",
            f"if({truth(random, depth - 1)}, {one}, {two})",
            f"case when {truth(random, depth - 1)} then {one} when {truth(random, depth - 1)} then 'w' end",
        )
    )


def number(random: Random, depth: int) -> str:
    """An expression of numbers."""
    if depth == 0 or random.random() < 0.2:
        return random.choice(("i", "n", "x", "d", "e.n", "1", "7", "-3", "2.5", "3000000000", "1L"))
    one, two = number(random, depth - 1), number(random, depth - 1)
    return random.choice(
        (
            f"{one} {random.choice('+-*/')} {two}",
            f"({one} {random.choice('+-*/')} {two})",
            f"{random.choice(('i', 'n', one))} % {random.choice((2, 3, 7, 0))}",
            f"pmod({random.choice(('i', 'n', one))}, {random.choice((2, 3, 7, 0))})",
            f"-({one})",
            f"length({text(random, depth - 1)})",
            f"bigint({random.choice(('d', one))})",
            f"cast({random.choice(('d', one))} as {random.choice(('int', 'bigint', 'double', 'string'))})",
            f"double({random.choice(('d', one))})",
            f"coalesce({one}, {two})",
            f"if({truth(random, depth - 1)}, {one}, {two})",
            f"case when {truth(random, depth - 1)} then {one} else {two} end",
        )
    )


def truth(random: Random, depth: int) -> str:
    """A condition."""
    if depth == 0 or random.random() < 0.1:
        return random.choice(("b", "b", "true", "s = 'a'", "n > 0"))
    compared = random.choice(("=", "<>", "<", ">", "<=", ">=", "==", "!="))
    pair = random.choice(
        ((text, text), (number, number), (lambda *_: "d", lambda r, _: str(r.randint(0, 50))), (truth, truth))
    )
    one, two = truth(random, depth - 1), truth(random, depth - 1)
    return random.choice(
        (
            f"{pair[0](random, depth - 1)} {compared} {pair[1](random, depth - 1)}",
            f"{one} and {two}",
            f"{one} or {two}",
            f"not {one}",
            f"({one} or {two})",
            f"{text(random, depth - 1)} in ('a', 'x-1', '7')",
            f"{random.choice(('i', 'n'))} not in (1, 7)",
            f"{text(random, depth - 1)} {random.choice(('', 'not '))}like '{random.choice(('a%', '%b', 'a_b'))}'",
            f"{random.choice((text, number))(random, depth - 1)} is {random.choice(('', 'not '))}null",
        )
    )


def moment(random: Random, depth: int) -> str:
    """A time of whole numbers."""
    return f"timestamp_{random.choice(('seconds', 'millis', 'micros'))}({number(random, depth - 1)})"


def same(one: pa.Array, other: pa.Array) -> bool:
    """Whether values are equal to the bit, but for the bits of NaN."""
    if pa.types.is_floating(one.type):
        return list(map(repr, one.to_pylist())) == list(map(repr, other.to_pylist()))
    return one.equals(other)


@pytest.mark.parametrize("odd", [False, True])
def test_expressions_mean_what_they_mean_in_spark(spark, promise, odd):
    from pyspark.errors import AnalysisException, ParseException

    random = Random(odd + 2 * SEED)
    told = seen = 0
    for _ in range(60 if SOAK else 3):
        rows = table(random, odd=odd)
        frame = spark.createDataFrame(pa.Table.from_batches([rows]))
        mine: dict[str, pa.Array] = {}
        for _ in range(100):
            made = random.choice((text, text, number, truth, moment))(random, random.randint(1, 3))
            seen += 1
            try:
                names(made, rows.schema)
                mine[made] = evaluated(made, rows)
            except InDoubt:
                continue
        for made, found in list(mine.items()):
            try:
                kind = frame.selectExpr(made).schema[0].dataType.simpleString()
            except (AnalysisException, ParseException) as error:
                raise AssertionError(f"Spark refuses {made}") from error
            if found.type == pa.bool_():
                assert kind == "boolean", made
            elif found.type == pa.large_string():  # a decimal, for which no trace has a column
                del mine[made]
            else:
                assert SPARK_KINDS[found.type] == kind, made
        theirs = frame.selectExpr(*(f"{made} as c{at}" for at, made in enumerate(mine))).toArrow()
        for at, (made, found) in enumerate(mine.items()):
            expected = theirs[f"c{at}"].combine_chunks()
            assert same(found, expected.cast(found.type)), (made, list(zip(found, expected, strict=True)))
            told += 1
    assert told > (0.1 if odd else 0.25) * seen
    promise("expressions").checked(told)
