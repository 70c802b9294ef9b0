"""Counts as people have them at hand, each from its file to the answer that they asked for."""

import pytest

HOT = [50_000 // (at + 1) for at in range(60)]
"""Counts of keys, the hottest first."""


def lines(header: str, row: str) -> str:
    return "\n".join([header, *(row.format(at=at, mod=at % 3, n=n) for at, n in enumerate(HOT))]) + "\n"


TABLES = {
    "writers of a sink": (
        lines("region,records,bytes", "p{at},{n},{n}0"),
        "verdict {} --engine flink --channels 8 --bytes bytes",
        "unless key p0 can be split over 2 workers (8 workers)",
    ),
    "keys of two columns before a join": (
        lines("country,city,n", "c{mod},x{at},{n}"),
        "verdict {} --engine spark --key country,city --channels 8",
        'unless key ["c0","x0"] can be split',
    ),
    "salts of a label": (
        lines("label,count", "l{at},{n}"),
        "advise salts {} --engine spark --parallelism 8",
        "if spark hashes KEY#0, KEY#1",
    ),
    "rows of an organization": (
        lines("org_id|rows", "org{at}|{n}"),
        "partition compare {} --channels 4:6",
        "Schemes compared at 6 workers",
    ),
    "tenants of two tables": (
        lines("table_name,tenant,row_count", "t{mod},t{at},{n}"),
        "verdict {} --key tenant --count row_count --channels 8",
        "unless key t0 can be split",
    ),
    "charges of a partition key": (
        lines("TimeGenerated,PartitionKey,PhysicalPartitionId,RequestCharge", "2024-03-14T10:00:00Z,k{at},{mod},{n}.5"),
        "verdict {} --key PartitionKey --engine kafka --channels 8",
        "unless key k0 can be split over 2 workers",
    ),
    "shards of a database": (
        lines(" shardid | shard_size ", " 10{at} | {n} "),
        "verdict {} --key shardid --count shard_size --channels 8",
        "unless key 100 can be split",
    ),
    "top keys of a sampler": (
        "WRITES Sampler:\n" + lines("\tPartition          Count       +/-", "\tuser:{at}          {n}      100"),
        "verdict {} --engine kafka --channels 8",
        "unless key user:0 can be split",
    ),
    "top keys in a spreadsheet": (
        lines("Partition;Count;+/-", "user:{at};{n};100"),
        "verdict {} --engine kafka --channels 8",
        "unless key user:0 can be split",
    ),
    "endpoints of a ring": (
        lines("endpoint,count", "/api/e{at},{n}"),
        "partition compare {} --channels 3 --scheme consistent --engine consistent:replicas=100",
        "today (consistent)",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_counts_at_hand_are_answered(adapt, tmp_path, monkeypatch, name):
    text, command, told = TABLES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.txt").write_text(text)
    said = adapt.done(*command.format("counts.txt").split())
    assert told in " ".join(said.out.split())
    assert "read as rows" not in said.err
