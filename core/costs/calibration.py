"""Result of a calibration: the profile, what it found and what not."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from adapt.core.costs.profile import Profile, ServiceBy
from adapt.core.costs.profile_file import profile_hash, write_profile
from adapt.core.table import Column, Displayed, Kind, Table

_BY = {
    ServiceBy.ALL: "the same for all rows",
    ServiceBy.KEY: "by key",
    ServiceBy.SIZE: "by the bytes of a row",
    ServiceBy.COST: "by the cost column of the trace",
}


@dataclass(frozen=True, slots=True, repr=False)
class Calibration(Displayed):
    """A cost profile and how it was measured."""

    profile: Profile
    notes: tuple[str, ...] = ()  # sentences for people, such as what a source cannot show

    def as_file(self) -> str:
        """The profile as the text of its file."""
        return write_profile(self.profile)

    def found(self) -> Table:
        """Measured costs."""
        service = self.profile.service
        rows: list[tuple[str, float, str]] = []
        if service.mean_s is not None:
            rows += [("service, mean", service.mean_s, f"{_BY[service.by]}; {service.rows:,} rows")]
        for share in (0.5, 0.99) if service.quantiles_s else ():
            rows += [(f"service, p{100 * share:g}", float(np.quantile(service.quantiles_s or (), share)), "")]
        for name, part in self.profile.parts()[1:]:
            rows += [
                (f"{name}, {each.name.removesuffix('_s').replace('_', ' ')}", value, str(each.metadata["doc"]))
                for each in fields(part)
                if each.metadata and (value := getattr(part, each.name)) is not None
            ]
        for one in self.profile.pauses:
            of = "all workers at once" if one.together else "each worker by itself"
            rows += [(f"pause, {one.kind}", float(np.mean(one.durations_s)), f"every {one.interval_s:.3g} s, {of}")]
        columns = [Column("cost", Kind.TEXT), Column("time", Kind.SECONDS, "s"), Column("meaning", Kind.TEXT)]
        profile = self.profile
        return Table.from_rows(
            "Measured", columns, rows, note=f"{profile.measured}; profile {profile_hash(profile)[:12]}"
        )

    def missing(self) -> Table:
        """What was not found, with the default of a replay."""
        columns = [Column("cost", Kind.TEXT), Column("default", Kind.TEXT)]
        return Table.from_rows("Not found", columns, list(self.profile.missing().items()))

    def displayed(self) -> list[Table]:
        """Measured costs, then what was not found."""
        return [self.found(), self.missing()]

    @property
    def said(self) -> Sequence[str]:
        """The notes."""
        return self.notes
