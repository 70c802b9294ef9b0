"""Hash functions, byte by byte."""


def fnv1a(data):
    state = 0x811C9DC5
    for byte in data:
        state = (state ^ byte) * 0x01000193 % 2**32
    return state
