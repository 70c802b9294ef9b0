"""A policy of a replay with its parameters."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from adapt.core.own.own_code import OwnCode

Policy = TypeVar("Policy", bound=StrEnum)
Parameters = TypeVar("Parameters")


@dataclass(frozen=True)  # a generic class with slots cannot be frozen in Python 3.11
class ChosenPolicy(Generic[Policy, Parameters]):
    """A policy, built in or a user's own, with its parameters."""

    policy: Policy | OwnCode
    parameters: Parameters  # of a built-in policy
    given: str = ""  # parameters as typed, which tell it from others of the same name

    def __str__(self) -> str:
        return f"{self.policy.value}:{self.given}" if self.given else self.policy.value


Chosen = TypeVar("Chosen", bound=ChosenPolicy[Any, Any])


def by_case(policies: Iterable[Chosen]) -> dict[str, Chosen]:
    """Policies by case: with parameters where several have the same name."""
    distinct = list(dict.fromkeys(policies))
    names = Counter(each.policy.value for each in distinct)
    return {each.policy.value if names[each.policy.value] == 1 else str(each): each for each in distinct}
