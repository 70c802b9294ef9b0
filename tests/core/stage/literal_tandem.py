"""Two stages in a row in plain Python: the reference of the compiled ones. No disturbances and no moves."""

from collections import deque
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count

GOLDEN = 0x9E3779B97F4A7C15
ALL = 2**64 - 1


def mixed(bits):
    """splitmix64's function of its counter."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & ALL
    return bits ^ (bits >> 31)


def made_of(number, producer, selectivity, groups):
    """The groups of what is made of a tuple, all groups being alike: a function of which tuple it is."""
    bits = mixed((number * GOLDEN + producer * 0xBF58476D1CE4E5B9 + 1) & ALL)
    copies = int(selectivity) + ((bits >> 11) / 2**53 < selectivity - int(selectivity))
    return [((mixed((bits + copy * GOLDEN) & ALL) >> 32) * groups) >> 32 for copy in range(1, copies + 1)]


@dataclass
class Item:
    producer: int
    number: int
    group: int
    cost: float


class LiteralTandem:
    """Workers with a producer and a consumer of each stage; one partition and one group a worker in each.

    The consumers of a worker share its CPU, one tuple at a time, and in turns if both have one. What is made of a tuple
    goes to the producer of the second stage; until that has room for all, the consumer takes no other.
    """

    def __init__(self, workers, rows, costs, selectivity, buffers, credits, latency, produce):
        """Rows of each producer as (due, item), and the costs of the second stage's tuples of each worker, in order."""
        self.n, self.rows, self.costs, self.selectivity = workers, rows, costs, selectivity
        self.buffers, self.credits, self.latency, self.produce = buffers, credits, latency, produce
        self.now = 0.0
        both, each = range(2), range(workers)
        self.pools = [[{} for _ in each] for _ in both]
        self.held = [[0] * workers for _ in both]
        self.connections = [[[deque() for _ in each] for _ in each] for _ in both]
        self.poll = [[0] * workers for _ in both]
        self.busy, self.turn, self.debt, self.since = [False] * workers, [0] * workers, [0.0] * workers, [0.0] * workers
        self.made = [deque() for _ in each]
        self.asleep = [False] * workers
        self.processed = [[], []]
        self.order, self.heap = count(), []
        for producer in each:
            self.fill(producer)

    def at(self, time, action):
        heappush(self.heap, (time, next(self.order), action))

    def run(self):
        while self.heap:
            self.now, _, action = heappop(self.heap)
            action()
        return self

    def fill(self, producer):
        while self.held[0][producer] < self.buffers[0] and self.rows[producer] and not self.asleep[producer]:
            due, item = self.rows[producer][0]
            if due > self.now:
                self.asleep[producer] = True
                self.at(due, partial(self.woken, producer))
                return
            self.rows[producer].popleft()
            self.accept(0, producer, item)

    def woken(self, producer):
        self.asleep[producer] = False
        self.fill(producer)

    def accept(self, stage, producer, item):
        self.debt[producer] += self.produce
        self.pools[stage][producer].setdefault(item.group, deque()).append(item)
        self.held[stage][producer] += 1
        self.forward(stage, producer)

    def forward(self, stage, producer):
        pool = self.pools[stage][producer]
        for worker in list(pool):
            if len(self.connections[stage][worker][producer]) < self.credits:
                items = pool.pop(worker)
                item = items.popleft()
                if items:
                    pool[worker] = items
                self.held[stage][producer] -= 1
                self.connections[stage][worker][producer].append((self.now + self.latency, item))
                self.at(self.now + self.latency, partial(self.share, worker))
                return

    def share(self, worker):
        """A CPU without work takes a tuple of one of the stages, if there is one."""
        if self.busy[worker]:
            return
        for stage in (self.turn[worker], 1 - self.turn[worker]):
            arrived = [
                (self.poll[stage][worker] + step) % self.n
                for step in range(self.n)
                if (inputs := self.connections[stage][worker][(self.poll[stage][worker] + step) % self.n])
                and inputs[0][0] <= self.now
            ]
            if arrived and not (stage == 0 and self.made[worker]):
                self.take(stage, worker, arrived[0])
                return

    def take(self, stage, worker, producer):
        _, item = self.connections[stage][worker][producer].popleft()
        self.poll[stage][worker] = (producer + 1) % self.n
        self.busy[worker], self.turn[worker] = True, 1 - stage
        cost = item.cost if stage == 0 else next(self.costs[worker])
        work = cost + max(0.0, self.debt[worker] - (self.now - self.since[worker]))
        self.debt[worker] = 0.0
        self.at(self.now + work, partial(self.finish, stage, worker, item))
        self.forward(stage, producer)
        if stage == 0:
            self.fill(producer)
        elif self.made[producer]:
            self.hand_on(producer)
            if not self.made[producer]:
                self.at(self.now, partial(self.share, producer))

    def finish(self, stage, worker, item):
        self.processed[stage].append((self.now, worker, item.producer, item.number))
        self.busy[worker], self.since[worker] = False, self.now
        if stage == 0:
            groups = made_of(item.number, item.producer, self.selectivity, self.n)
            self.made[worker].extend(Item(worker, item.number, group, 0.0) for group in groups)
            self.hand_on(worker)
        self.share(worker)

    def hand_on(self, worker):
        while self.made[worker] and self.held[1][worker] < self.buffers[1]:
            self.accept(1, worker, self.made[worker].popleft())
