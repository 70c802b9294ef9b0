"""SQL expressions of columns, evaluated by Arrow as Spark would.

Whatever is not certain to, by the expression or by a value, raises `InDoubt`: Spark evaluates it then. sqlglot parses,
and knows Spark's dialect.
"""

import re
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot

from adapt.traces.ingest.times import EARLIEST_US, LATEST_US
from adapt.traces.sources.reading.records import InDoubt

Of: TypeAlias = Callable[[Any], Any]
"""Gives the values of a part of an expression: an array, or a scalar."""

_TEXT, _INT, _LONG, _DOUBLE, _TRUTH = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
_WHOLE = (pa.int8(), pa.int16(), _INT, _LONG)
_DECIMAL = pa.large_string()
"""Type of a decimal number of an expression, which is a double where it meets one; no column has this type."""

_UNSAID = ("safe", "typed", "coalesce", "flatten")
"""Arguments of the parser's that change nothing here."""
_TO = {"TEXT": _TEXT, "INT": _INT, "BIGINT": _LONG, "DOUBLE": _DOUBLE}
_DIGITS = {_INT: "-?[0-9]{1,9}", _LONG: "-?[0-9]{1,18}", _DOUBLE: r"-?[0-9]{1,15}(\.[0-9]{1,15})?"}
"""Numbers in texts."""
_UNITS = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1000, "timestamp_micros": 1}


def names(text: str, columns: pa.Schema) -> list[str]:
    """Columns that an expression names."""
    found = [each.parts[0].name for each in _parsed(text).find_all(sqlglot.exp.Column)]
    if not found or not {*found} <= {*columns.names}:
        raise InDoubt
    return list(dict.fromkeys(found))


def evaluated(text: str, rows: pa.RecordBatch) -> pa.Array:
    """The values of an expression of the columns of rows."""
    try:
        value = _value(_parsed(text), rows)
    except (pa.ArrowException, KeyError, TypeError, ValueError):  # what Arrow or a rule does not know
        raise InDoubt from None
    return pa.repeat(value, len(rows)) if isinstance(value, pa.Scalar) else value


@lru_cache
def _parsed(text: str) -> Any:
    # escapes within texts, and what follows the expression, are read in more ways than one
    if re.search(r"\\|--|/\*|;", text):
        raise InDoubt
    try:
        return sqlglot.parse_one(text, dialect="spark")
    except sqlglot.errors.SqlglotError:
        raise InDoubt from None


def _value(node: Any, rows: pa.RecordBatch) -> Any:
    """The values of a part of an expression."""
    name = type(node).__name__
    arguments, rule = _RULES.get(name, ("", None))
    given = {each for each, value in node.args.items() if value}
    if rule is None or not given <= {*arguments.split(), *_UNSAID}:
        raise InDoubt
    level = _LEVELS.get(name, 0)
    for part in node.iter_expressions() if level else ():
        # without parentheses, Spark may read it otherwise; the parser adds some around what is compared
        part = type(part.unnest() if level == _COMPARISON else part).__name__
        within = _LEVELS.get(part, 9)
        mixed = (name == "DPipe") != (part == "DPipe")
        if within < level or (within == level and (mixed or level == _COMPARISON)):
            raise InDoubt
    return rule(node, lambda each: rows.column(each) if isinstance(each, str) else _value(each, rows))


def _known(value: Any, *kinds: pa.DataType) -> Any:
    """The value, if it has one of these types."""
    if value.type not in kinds:
        raise InDoubt
    return value


def _sure(holds: Any) -> None:
    """Check that something holds of all values that are not null."""
    if pc.all(holds, min_count=0).as_py() is False:
        raise InDoubt


def _text(value: Any) -> Any:
    """As text, as Spark joins it."""
    return _known(value, _TEXT, *_WHOLE, _TRUTH).cast(_TEXT)


def _as(value: Any, kind: pa.DataType) -> Any:
    """A cast to a number or text."""
    if kind == _TEXT or value.type == kind:
        return value if value.type == kind else _text(value)
    if value.type == _TEXT:
        value = pc.if_else(pc.equal(value, ""), None, value)
        _sure(pc.match_substring_regex(value, f"^(?:{_DIGITS[kind]})$"))
    # raises if a number does not fit
    return _known(value, _TEXT, *_WHOLE, _DECIMAL if kind == _DOUBLE else _DOUBLE).cast(kind)


def _same(*values: Any) -> list[Any]:
    """Values of one type, numbers widened as Spark does."""
    kinds = {value.type for value in values}
    if len(kinds) > 1 and kinds <= {*_WHOLE}:
        return [value.cast(max(kinds, key=lambda kind: kind.bit_width)) for value in values]
    if len(kinds) > 1 and _DOUBLE in kinds:
        return [_as(_known(value, *_WHOLE, _DOUBLE, _DECIMAL), _DOUBLE) for value in values]
    return [_known(value, values[0].type if values[0].type != _DECIMAL else None) for value in values]


def _compared(function: str) -> Callable[[Any, Of], Any]:
    def compare(node: Any, of: Of) -> Any:
        pair = [of(node.this), of(node.expression)]
        kinds = {value.type for value in pair}
        if len(kinds) == 2 and _TEXT in kinds:  # a text is read as the other's type
            pair = [_known(value, _TEXT, _INT, _LONG) for value in pair]
            pair = [_as(value, next(iter(kinds - {_TEXT}))) for value in pair]
        for value in (pair := _same(*pair)):
            if value.type == _DOUBLE:  # NaN, which Spark compares and Arrow does not
                _sure(pc.invert(pc.is_nan(value)))
        return pc.call_function(function, pair)

    return compare


def _computed(function: str) -> Callable[[Any, Of], Any]:
    def compute(node: Any, of: Of) -> Any:
        pair = [of(node.this), of(node.expression)]
        # a text is a double
        pair = _same(*(_as(each, _DOUBLE if each.type == _TEXT else each.type) for each in pair))
        if function == "divide":
            pair = [_as(each, _DOUBLE) for each in pair]
            pair[1] = pc.if_else(pc.equal(pair[1], 0.0), None, pair[1])
        return pc.call_function(function, pair)

    return compute


def _remainder(node: Any, of: Of) -> Any:
    """`%` and `pmod` of whole numbers."""
    is_positive = bool(node.expressions)
    value, by = _same(*(_known(of(each), *_WHOLE) for each in node.expressions or (node.this, node.expression)))
    if not isinstance(by, pa.Scalar) or not by.as_py() or isinstance(value, pa.Scalar):
        raise InDoubt
    numbers = pc.fill_null(value, 0).to_numpy(False)
    found = (np.mod if is_positive else np.fmod)(numbers, by.as_py())
    return pa.array(found, value.type, mask=value.is_null().to_numpy(False))


def _joined(node: Any, of: Of) -> Any:
    return pc.binary_join_element_wise(*map(_text, map(of, node.expressions or [node.this, node.expression])), "")


def _joined_by(node: Any, of: Of) -> Any:
    separator, *parts = (_text(of(each)) for each in node.expressions)
    if not isinstance(separator, pa.Scalar):
        raise InDoubt
    # one by one: Arrow 26 loses rows in which it skips every part
    joined = reduce(lambda one, two: pc.coalesce(pc.binary_join_element_wise(one, two, separator), one, two), parts)
    return pc.fill_null(joined, "")


def _cased(function: Callable[[Any], Any]) -> Callable[[Any, Of], Any]:
    def change(node: Any, of: Of) -> Any:
        value = _known(of(node.this), _TEXT)
        _sure(pc.string_is_ascii(value))
        return function(value)

    return change


def _given(node: Any, least: int = 0) -> Any:
    """A text, or a whole number of at least this, that an expression states."""
    if not isinstance(node, sqlglot.exp.Literal):
        raise InDoubt
    if node.is_string:
        return node.this
    if not re.fullmatch("[0-9]{1,9}", node.this) or int(node.this) < least:
        raise InDoubt
    return int(node.this)


def _part(node: Any, of: Of) -> Any:
    value, name = _known(of(node.this), _TEXT), type(node).__name__
    if name == "Substring":
        start, length = _given(node.args["start"], 1) - 1, node.args.get("length")
        return pc.utf8_slice_codeunits(value, start, length and start + _given(length))
    length = _given(node.expression, 1)
    return pc.utf8_slice_codeunits(value, *((0, length) if name == "Left" else (-length, None)))


def _element(node: Any, of: Of) -> Any:
    """One of the pieces of a text."""
    split, place = node.this, _given(node.expressions[0])
    if type(split).__name__ != "RegexpSplit" or re.search(r"^$|[\\.\[\]{}()*+?^$|]", mark := _given(split.expression)):
        raise InDoubt
    pieces = pc.list_slice(pc.split_pattern(_known(of(split.this), _TEXT), mark), place, place + 1, 1, True)
    return pc.list_element(pieces, 0)


def _among(node: Any, of: Of) -> Any:
    value, some = of(node.this), [_given(each) for each in node.expressions]
    value = value if value.type == _TEXT else _known(value, *_WHOLE).cast(_LONG)
    return pc.if_else(pc.is_valid(value), pc.is_in(value, pa.array(some, value.type)), None)


def _like(node: Any, of: Of) -> Any:
    found = pc.match_like(_known(of(node.this), _TEXT), _given(node.expression))
    return pc.invert(found) if node.args.get("negate") else found


def _chosen(node: Any, of: Of) -> Any:
    """`if` and `case`."""
    branches, last = node.args.get("ifs") or [node], node.args.get("false") or node.args.get("default")
    values = _same(*(of(each.args["true"]) for each in branches), *([of(last)] if last else []))
    rest = values.pop() if last else pa.scalar(None, values[0].type)
    for each, value in reversed(list(zip(branches, values, strict=True))):
        rest = pc.if_else(pc.fill_null(_known(of(each.this), _TRUTH), False), value, rest)
    return rest


def _column(node: Any, of: Of) -> Any:
    first, *fields = (part.name for part in node.parts)
    value = of(first)
    for name in fields:
        if not pa.types.is_struct(value.type) or value.type.get_field_index(name) < 0:
            raise InDoubt
        value = pc.struct_field(value, name)
    return value


def _literal(node: Any, _: Of) -> Any:
    if node.is_string:
        return pa.scalar(node.this)
    if re.fullmatch("[0-9]{1,18}", node.this):
        return pa.scalar(int(node.this), _INT if int(node.this) < 1 << 31 else _LONG)
    if not re.fullmatch(_DIGITS[_DOUBLE], node.this):
        raise InDoubt
    return pa.scalar(node.this, _DECIMAL)


def _function(node: Any, of: Of) -> Any:
    """Functions that the parser does not know."""
    name = node.name.lower()
    if name == "pmod":
        return _remainder(node, of)
    if name == "bigint":
        return _as(of(*node.expressions), _LONG)
    unit = _UNITS.get(name)
    if unit is None:
        raise InDoubt
    value = _known(of(*node.expressions), *_WHOLE).cast(_LONG)
    _sure(pc.less(value, LATEST_US // unit))
    _sure(pc.greater(value, EARLIEST_US // unit))
    return pc.multiply(value, unit).cast(pa.timestamp("us", "UTC"))


def _cast(node: Any, of: Of) -> Any:
    if node.to.expressions or node.to.this.name not in _TO:
        raise InDoubt
    return _as(of(node.this), _TO[node.to.this.name])


def _is_null(node: Any, of: Of) -> Any:
    if type(node.expression).__name__ != "Null":
        raise InDoubt
    return pc.is_null(of(node.this))


def _of_one(function: Callable[..., Any], *kinds: pa.DataType) -> tuple[str, Callable[[Any, Of], Any]]:
    return "this", lambda node, of: function(_known(of(node.this), *kinds))


def _of_truths(function: str) -> tuple[str, Callable[[Any, Of], Any]]:
    return "this expression", lambda node, of: pc.call_function(
        function, [_known(of(each), _TRUTH) for each in (node.this, node.expression)]
    )


_LEVELS = {
    name: level
    for level, some in enumerate(
        ("Or", "And", "Not", "EQ NEQ LT LTE GT GTE In Like Is", "Add Sub DPipe", "Mul Div Mod", "Neg"), 1
    )
    for name in some.split()
}
"""How tightly operators bind."""

_COMPARISON = _LEVELS["EQ"]

_COMPARED = {"EQ": "equal", "NEQ": "not_equal", "LT": "less", "LTE": "less_equal", "GT": "greater"}
_RULES: dict[str, tuple[str, Callable[[Any, Of], Any]]] = {
    **{name: ("this expression", _compared(each)) for name, each in {**_COMPARED, "GTE": "greater_equal"}.items()},
    **{
        name: ("this expression", _computed(each))
        for name, each in {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide"}.items()
    },
    "Paren": ("this", lambda node, of: of(node.this)),
    "Column": ("this table db catalog", _column),
    "Literal": ("this is_string", _literal),
    "Boolean": ("this", lambda node, _: pa.scalar(bool(node.this))),
    "Mod": ("this expression", _remainder),
    "Anonymous": ("this expressions", _function),
    "And": _of_truths("and_kleene"),
    "Or": _of_truths("or_kleene"),
    "Not": _of_one(pc.invert, _TRUTH),
    "Neg": _of_one(pc.negate, *_WHOLE, _DOUBLE),
    "Trim": _of_one(lambda value: pc.utf8_trim(value, " "), _TEXT),
    "Length": _of_one(pc.utf8_length, _TEXT),
    "Is": ("this expression", _is_null),
    "In": ("this expressions", _among),
    "Like": ("this expression negate", _like),
    "If": ("this true false", _chosen),
    "Case": ("ifs default", _chosen),
    "Coalesce": ("this expressions", lambda node, of: pc.coalesce(*_same(*map(of, [node.this, *node.expressions])))),
    "Concat": ("expressions", _joined),
    "DPipe": ("this expression", _joined),
    "ConcatWs": ("expressions", _joined_by),
    "Lower": ("this", _cased(pc.ascii_lower)),
    "Upper": ("this", _cased(pc.ascii_upper)),
    "Substring": ("this start length", _part),
    "Left": ("this expression", _part),
    "Right": ("this expression", _part),
    "Bracket": ("this expressions", _element),
    "Cast": ("this to _type", _cast),
    "TryCast": ("this to _type", _cast),
}
"""Parts of expressions that are evaluated here: the arguments that they may have, and how."""
