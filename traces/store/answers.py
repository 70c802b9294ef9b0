"""What was found of a stream, kept with the artefacts that are made of it."""

from collections.abc import Mapping
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.verdict.answer import Answer

FIELD = "answer"
"""Under which it stands among the facts of a manifest or the fields of a plan; no content hash minds it."""


def kept(answer: Answer | None) -> dict[str, Any]:
    """The field with what was found; nothing if nothing was sought."""
    return {} if answer is None else {FIELD: answer.as_data()}


def found_in(data: Mapping[str, Any], name: str) -> Answer | None:
    """What was found, from the facts of a manifest or the fields of a plan; None where earlier versions made it.

    Args:
        name: Whose they are, for the refusal.

    Raises:
        BadInput: it is damaged.
    """
    told = data.get(FIELD)
    if told is None:
        return None
    try:
        return Answer.from_data(told)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{name} is damaged: {FIELD} lacks {error}; make it again") from error
