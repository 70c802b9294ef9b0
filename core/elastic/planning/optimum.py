"""Offline optimum: follows a schedule made in advance."""

from dataclasses import dataclass
from typing import ClassVar

from adapt.core.elastic.planning.cheapest_schedule import Schedule
from adapt.core.stage.control.workers import Seen


@dataclass(frozen=True, slots=True)
class FollowSchedule:
    """Follows a schedule.

    Attributes:
        schedule: Workers by window.
    """

    schedule: Schedule
    paces_itself: ClassVar[bool] = True

    def wanted(self, seen: Seen) -> int:
        """The scheduled number of workers."""
        return self.schedule.at(seen.at_s)
