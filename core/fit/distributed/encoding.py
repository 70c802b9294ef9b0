"""What nodes and their driver say to each other, as JSON."""

import json
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.correspondent import Places
from adapt.core.fit.distributed.cuts import Group
from adapt.core.fit.distributed.group_peer import GroupDeployment, Question
from adapt.core.fit.distributed.mailbox import Acknowledged, Channel, Data, Overdue
from adapt.core.fit.distributed.messages import Delta, Sheet, Topic
from adapt.core.fit.distributed.node_table import NodeTable
from adapt.core.fit.distributed.peer import Deployment
from adapt.core.fit.network.computed import Computed, Function
from adapt.core.fit.network.names import Grid, OperatorKind, RateSteps
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output, Window
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.bounds import Bounds
from adapt.core.fit.tables.local_plans import Part
from adapt.core.fit.tables.rows import FitRows
from adapt.core.fit.tables.spacing import Spacing

_MESSAGES = (Acknowledged, Channel, Data, Overdue, Delta, Sheet, Topic)
_DEPLOYED = (Deployment, GroupDeployment, Question, Places, Bounds, Part, Spacing, Grid, RateSteps, FitRows, NodeTable)
_NETWORK = (Network, Node, Input, Operator, Output, Window, Computed, Function, OperatorKind)
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*_MESSAGES, *_DEPLOYED, *_NETWORK, UsageError)}


def encoded(value: object) -> bytes:
    """The JSON of numbers, texts, arrays, containers, messages and deployments."""
    return json.dumps(_plain(value), separators=(",", ":")).encode()


def decoded(text: bytes) -> Any:
    """What `encoded` was given, to the bit.

    Raises:
        KeyError: of another class.
    """
    return _value(json.loads(text))


def _plain(value: object) -> object:
    match value:
        case Enum():
            return {type(value).__name__: [value.value]}
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return value.item()
        case np.ndarray():
            return {"": [value.dtype.str, list(value.shape), value.reshape(-1).tolist()]}
        case dict():
            return {"dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
        case tuple():
            return {"tuple": [_plain(item) for item in value]}
        case frozenset():
            return {"frozenset": [_plain(item) for item in sorted(value)]}
        case list():
            return [_plain(item) for item in value]
        case Group():
            return {"Group": [_plain(vars(value))]}
        case Program():
            return _plain(value.wiring.network)  # it follows
        case NodeTable():
            return {"NodeTable": [_plain(item) for item in (value.table, value.conditions, None, value.too_large)]}
        case UsageError():
            return {"UsageError": [str(value)]}
    assert is_dataclass(value), value
    return {type(value).__name__: [_plain(getattr(value, each.name)) for each in fields(value)]}


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, given),) = plain.items()
    if kind == "":
        return np.array(given[2], np.dtype(given[0])).reshape(given[1])
    if kind == "dict":
        return {_value(key): _value(item) for key, item in given}
    items = [_value(item) for item in given]
    if kind in ("tuple", "frozenset"):
        return tuple(items) if kind == "tuple" else frozenset(items)
    if kind == "Part":
        items[1] = Program.from_network(items[1])
    if kind == "Group":
        group = object.__new__(Group)
        vars(group).update(items[0])
        return group
    return _KINDS[kind](*items)
