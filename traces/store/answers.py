"""The verdict on a stream, stored in the artefacts made from it."""

from collections.abc import Mapping
from typing import Any

from adapt.core.metrics import RENAMED
from adapt.core.verdict.answer import Answer
from adapt.traces.read_errors import damaged

FIELD = "answer"
"""The field of a manifest summary or of a plan; content hashes ignore it."""


def kept(answer: Answer | None) -> dict[str, Any]:
    """The answer as a field; empty without an answer."""
    return {} if answer is None else {FIELD: answer.as_data()}


def _under_todays_names(data: Any) -> Any:
    """The data of a verdict, also of one that version 1 of its schema named."""
    if isinstance(data, list):
        return [_under_todays_names(each) for each in data]
    if not isinstance(data, Mapping):
        return data
    names = {name: name.replace("imbalance_floor", "best_possible") for name in data} | {"gap": RENAMED["gap"]}
    return {names[name]: _under_todays_names(value) for name, value in data.items()}


def found_in(data: Mapping[str, Any], name: str) -> Answer | None:
    """The answer stored in a manifest summary or a plan, if any.

    Args:
        name: The file, for the error message.
    """
    stored = data.get(FIELD)
    if stored is None:
        return None
    try:
        return Answer.from_data({**stored, "verdict": _under_todays_names(stored["verdict"])})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(f"{name}, field {FIELD!r},", error) from error
