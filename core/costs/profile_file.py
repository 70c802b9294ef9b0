"""TOML file of a cost profile."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from hashlib import sha256
from typing import Any, cast

from adapt.core.costs.profile import (
    SCHEMA,
    CostSource,
    KeyMean,
    Pause,
    Profile,
    Restart,
    Service,
    ServiceBy,
    SizeMean,
    StateCosts,
    Transport,
)
from adapt.core.errors import BadInput
from adapt.core.toml import Element, elements, only, versioned_document, with_lines

_TABLES = {"service": Service, "transport": Transport, "state": StateCosts, "restart": Restart}
_LISTS = {"key": KeyMean, "size": SizeMean, "pause": Pause}
_HEAD = ("schema", "source", "measured")


def write_profile(profile: Profile) -> str:
    """A profile as text of a TOML file."""
    lines = ["# Cost profile: adapt replay ... --costs FILE. Times are in seconds; edit what you know better."]
    lines += [f'schema = "{SCHEMA}"', f'source = "{profile.source}"', f"measured = {_text(profile.measured)}"]
    missing = profile.missing()
    for name, part in profile.parts():
        lines += ["", f"[{name}]", *_fields(part)]
        lines += [
            f"# {each.name}: not found ({each.metadata['doc']}); default: {missing[f'{name}.{each.name}']}"
            for each in fields(part)
            if f"{name}.{each.name}" in missing
        ]
    for name, listed in (("key", profile.keys), ("size", profile.sizes), ("pause", profile.pauses)):
        for one in listed:
            lines += ["", f"[[{name}]]", *_fields(one)]
    if not profile.pauses:
        lines += ["", "# [[pause]]: none found; default: no pauses"]
    return "\n".join(lines) + "\n"


def read_profile(text: str) -> Profile:
    """Read the text of a profile file."""
    document = versioned_document(text, SCHEMA, "adapt calibrate")
    try:
        only("the profile", document, (*_HEAD, *_TABLES, *_LISTS))
        head = Element("the profile", document, tuple(document))
        tables: dict[str, Any] = {
            name: _part(f"[{name}]", kind, document.get(name, {})) for name, kind in _TABLES.items()
        }
        for (name, kind), of in zip(_LISTS.items(), ("keys", "sizes", "pauses"), strict=True):
            tables[of] = tuple(_part(f"one [[{name}]]", kind, one) for one in elements(document, name))
        return Profile(head.choice("source", CostSource), head.text("measured"), **tables)
    except BadInput as error:
        raise BadInput(with_lines(text, [str(error)])) from None


def profile_hash(profile: Profile) -> str:
    """SHA-256 of what a profile says, whatever its layout."""
    return sha256(write_profile(profile).encode()).hexdigest()


def _fields(part: Any) -> list[str]:
    """The fields of a table that have a value."""
    given = ((each.name, getattr(part, each.name), each.default) for each in fields(part))
    return [f"{name} = {_value(value)}" for name, value, usual in given if value is not None and value != usual]


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        rows = [", ".join(map(_number, value[at : at + 8])) for at in range(0, len(value), 8)]
        return f"[{rows[0]}]" if len(rows) == 1 else "[\n  " + ",\n  ".join(rows) + ",\n]"
    if isinstance(value, bool):
        return str(value).lower()
    return _number(value) if isinstance(value, int | float) else _text(str(value))


def _number(value: float) -> str:
    """A number to six digits."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _part(where: str, kind: type[Any], given: Any) -> Any:
    """A table as its dataclass."""
    if not isinstance(given, Mapping):
        raise BadInput(f"{where} must be a table with fields")
    names = {each.name: str(each.type) for each in fields(kind)}
    of = Element(where, given, tuple(names))
    required = [each.name for each in fields(kind) if each.default is MISSING]
    return kind(**{name: _read(of, name, names[name]) for name in dict.fromkeys([*required, *given])})


def _read(of: Element, name: str, kind: str) -> Any:
    """A field by its annotation."""
    if "tuple" in kind:
        nothing: tuple[float, ...] = ()
        return of.read(name, _numbers_of, nothing)
    if "bool" in kind:
        return of.truth(name, False)
    if "ServiceBy" in kind:
        return of.choice(name, cast(type[StrEnum], ServiceBy))
    if "str" in kind:
        return of.text(name)
    return of.whole(name, 0) if "int" in kind else of.number(name)


def _numbers_of(where: str, name: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or any(isinstance(one, bool) or not isinstance(one, int | float) for one in value):
        raise BadInput(f"{where}: {name} must be a list of numbers")
    return tuple(map(float, value))
