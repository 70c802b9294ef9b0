"""Threads that run at the same time."""

import threading
from collections.abc import Callable


def at_once(threads: int, work: Callable[[int], int]) -> list[int]:
    """What compiled work gives in each thread, by its number."""
    given = [0] * threads

    def run(number: int) -> None:
        given[number] = work(number)

    running = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return given
