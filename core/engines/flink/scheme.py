"""The flink scheme: the placement of Flink's `keyBy`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.engines.flink.hash import codes_of_bytes, flink_hash_of_number, flink_hash_of_text, mixed_codes
from adapt.core.engines.placement import EnginePartitioner
from adapt.core.keys.columns import KeyBytes, one_key
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.schemes.key_groups import MOST_GROUPS, channels_of_groups, groups_for
from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class FlinkPartitioner(EnginePartitioner):
    """Flink's exact placement of `String`, `Long` and `Integer` keys on subtasks.

    A key's group is its mixed hash code modulo the max parallelism, and group g belongs to subtask
    floor(g N / max parallelism). Null and binary keys, which Flink rejects, have the codes of `flink_hash`.

    Source: users and peers, section 5.1, with vectors from Flink's own classes.
    """

    channels: int  # N, the parallelism, from 1 to the max parallelism
    max_parallelism: int | None = None  # the number of key groups (default: Flink's default for N subtasks)
    key_type: KeyType | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_parallelism", groups_for(self.channels, self.max_parallelism, MOST_GROUPS))

    @property
    def groups(self) -> int:
        """The number of key groups."""
        assert self.max_parallelism is not None
        return self.max_parallelism

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:
        """The channel of one key by its bytes."""
        return self.hash_of(key, self._in_source(key_type)) % self.groups * self.channels // self.groups

    def hash_of(self, key: bytes, key_type: KeyType) -> int:
        """The hash of one key by its bytes."""
        if key_type.storage is KeyType.INT64:
            return flink_hash_of_number(key if key_type is KeyType.INT64 else key[:4])
        return flink_hash_of_text(key) if key_type is KeyType.STRING else self.mixed_hash_of(key, key_type)

    def mixed_hash_of(self, key: bytes, key_type: KeyType) -> int:
        """The same by its hash code."""
        return mixed_codes(self.codes_of(one_key(key), key_type)).item()

    def of_bytes(self, keys: KeyBytes, key_type: KeyType) -> Channels:
        """The channel of each key, without nulls."""
        return self.of_codes(self.codes_of(keys, key_type))

    def of_codes(self, codes: NDArray[np.int32]) -> Channels:
        """The channel of each hash code."""
        groups = np.mod(mixed_codes(codes), np.int32(self.groups))
        return channels_of_groups(groups, self.channels, self.groups)

    def codes_of(self, keys: KeyBytes, key_type: KeyType) -> NDArray[np.int32]:
        """The hash code of each key, without nulls."""
        return codes_of_bytes(keys, key_type)

    def of_null(self, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of the null key, of hash code 0."""
        return int(self.of_codes(np.zeros(1, np.int32))[0])
