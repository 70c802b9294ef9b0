"""MD5, as a number of 128 bits, big-endian."""

from math import floor, sin

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.engines.hash_functions.murmur3_32 import rotated
from adapt.core.keys.columns import KeyBytes, Words

_SINES = np.array([floor(abs(sin(step + 1)) * 2**32) for step in range(64)], np.uint32)
_A, _B = np.uint32(0x67452301), np.uint32(0xEFCDAB89)
_C, _D = np.uint32(0x98BADCFE), np.uint32(0x10325476)


def md5(keys: KeyBytes) -> tuple[Words, Words]:
    """The high and low words of the digest of each key."""
    high, low = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64)
    _md5(keys.data, keys.offsets, _SINES, high, low)
    return high, low


@inlined
def _turned(word: np.uint32) -> np.uint64:
    """A word with its bytes reversed."""
    return np.uint64(
        ((word & np.uint32(0xFF)) << np.uint32(24))
        | ((word & np.uint32(0xFF00)) << np.uint32(8))
        | ((word >> np.uint32(8)) & np.uint32(0xFF00))
        | (word >> np.uint32(24))
    )


@inlined
def _step(a: np.uint32, b: np.uint32, mixed: np.uint32, word: np.uint32, sine: np.uint32, bits: int) -> np.uint32:
    return np.uint32(b + rotated(np.uint32(a + mixed + word + sine), bits))


@compiled
def _md5(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], sines: NDArray[np.uint32], high: Words, low: Words
) -> None:
    block = np.empty(16, np.uint32)
    for row in range(len(high)):
        start, end = offsets[row], offsets[row + 1]
        length = end - start
        a, b, c, d = _A, _B, _C, _D
        # One byte 0x80 and the length in bits, 8 bytes, end the last block.
        for number in range((length + 8) // 64 + 1):
            for place in range(16):
                word = np.uint32(0)
                first = 64 * number + 4 * place
                for byte in range(4):
                    at = first + byte
                    if at < length:
                        word |= np.uint32(data[start + at]) << np.uint32(8 * byte)
                    elif at == length:
                        word |= np.uint32(0x80) << np.uint32(8 * byte)
                block[place] = word
            if number == (length + 8) // 64:
                block[14] = np.uint32(np.uint64(8 * length) & np.uint64(0xFFFFFFFF))
                block[15] = np.uint32(np.uint64(8 * length) >> np.uint64(32))
            a0, b0, c0, d0 = a, b, c, d
            for at in range(0, 16, 4):
                a = _step(a, b, (b & c) | (~b & d), block[at], sines[at], 7)
                d = _step(d, a, (a & b) | (~a & c), block[at + 1], sines[at + 1], 12)
                c = _step(c, d, (d & a) | (~d & b), block[at + 2], sines[at + 2], 17)
                b = _step(b, c, (c & d) | (~c & a), block[at + 3], sines[at + 3], 22)
            for at in range(16, 32, 4):
                a = _step(a, b, (d & b) | (~d & c), block[(5 * at + 1) & 15], sines[at], 5)
                d = _step(d, a, (c & a) | (~c & b), block[(5 * at + 6) & 15], sines[at + 1], 9)
                c = _step(c, d, (b & d) | (~b & a), block[(5 * at + 11) & 15], sines[at + 2], 14)
                b = _step(b, c, (a & c) | (~a & d), block[(5 * at) & 15], sines[at + 3], 20)
            for at in range(32, 48, 4):
                a = _step(a, b, b ^ c ^ d, block[(3 * at + 5) & 15], sines[at], 4)
                d = _step(d, a, a ^ b ^ c, block[(3 * at + 8) & 15], sines[at + 1], 11)
                c = _step(c, d, d ^ a ^ b, block[(3 * at + 11) & 15], sines[at + 2], 16)
                b = _step(b, c, c ^ d ^ a, block[(3 * at + 14) & 15], sines[at + 3], 23)
            for at in range(48, 64, 4):
                a = _step(a, b, c ^ (b | ~d), block[(7 * at) & 15], sines[at], 6)
                d = _step(d, a, b ^ (a | ~c), block[(7 * at + 7) & 15], sines[at + 1], 10)
                c = _step(c, d, a ^ (d | ~b), block[(7 * at + 14) & 15], sines[at + 2], 15)
                b = _step(b, c, d ^ (c | ~a), block[(7 * at + 21) & 15], sines[at + 3], 21)
            a, b = np.uint32(a + a0), np.uint32(b + b0)
            c, d = np.uint32(c + c0), np.uint32(d + d0)
        high[row] = (_turned(a) << np.uint64(32)) | _turned(b)
        low[row] = (_turned(c) << np.uint64(32)) | _turned(d)
