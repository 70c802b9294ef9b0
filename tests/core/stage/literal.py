"""The stage in plain Python, one heap of events and one object a tuple: the reference of the compiled one."""

from collections import deque
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count


@dataclass
class Item:
    producer: int
    number: int
    group: int
    due: float
    cost: float


class LiteralStage:
    """Producers, connections with credits and latency, consumers; Exchange is the stage with a buffer of one.

    Section 2 of the specification read aloud. No disturbances and no moves. Tuples come from `pull(producer, now)`,
    which gives an item, or the time of the next one, or None when there are none.
    """

    def __init__(self, sites, owner_of, pull, buffer=1, credits=24, latency=70e-6, produce=0.5e-6):
        self.n, self.owner_of, self.pull = sites, owner_of, pull
        self.buffer, self.credits, self.latency, self.produce = buffer, credits, latency, produce
        self.now = 0.0
        self.pools = [{} for _ in range(sites)]  # of each producer, by partition, in cyclic order
        self.held = [0] * sites
        self.connections = [[deque() for _ in range(sites)] for _ in range(sites)]  # site, producer: (arrival, item)
        self.poll = [0] * sites
        self.waiting = [None] * sites  # since when a consumer waits
        self.debt = [0.0] * sites
        self.asleep = [False] * sites  # whether a producer waits for its next row
        self.processed = []
        self.order = count()
        self.heap = []
        for site in range(sites):
            self.at(0.0, partial(self.serve, site))
        for producer in range(sites):
            self.fill(producer)

    def at(self, time, action):
        heappush(self.heap, (time, next(self.order), action))

    def run(self, until):
        while self.heap and self.heap[0][0] < until:
            self.now, _, action = heappop(self.heap)
            action()
        self.now = until
        return self

    def fill(self, producer):
        """Pull as long as there is room, sending on whatever can go."""
        while self.held[producer] < self.buffer:
            item = self.pull(producer, self.now)
            if item is None or self.asleep[producer]:
                return
            if isinstance(item, float):
                self.asleep[producer] = True
                self.at(item, partial(self.woken, producer))
                return
            self.debt[producer] += self.produce
            partition = self.owner_of.partition(item.group)
            self.pools[producer].setdefault(partition, deque()).append(item)
            self.held[producer] += 1
            self.forward(producer)

    def woken(self, producer):
        self.asleep[producer] = False
        self.fill(producer)

    def forward(self, producer):
        """Send the head of the next partition whose destination has room."""
        pool = self.pools[producer]
        for partition in list(pool):
            site = self.owner_of.site(partition)
            if len(self.connections[site][producer]) < self.credits:
                items = pool.pop(partition)
                item = items.popleft()
                if items:
                    pool[partition] = items  # behind the others
                self.held[producer] -= 1
                arrival = self.now + self.latency
                self.connections[site][producer].append((arrival, item))
                if self.waiting[site] is not None:
                    self.at(arrival, partial(self.arrived, site))
                return

    def arrived(self, site):
        if self.waiting[site] is not None:
            self.debt[site] = max(0.0, self.debt[site] - (self.now - self.waiting[site]))
            self.waiting[site] = None
            self.serve(site)

    def serve(self, site):
        """Take the next arrival, polling the connections in turn."""
        for step in range(self.n):
            producer = (self.poll[site] + step) % self.n
            connection = self.connections[site][producer]
            if connection and connection[0][0] <= self.now:
                self.poll[site] = (producer + 1) % self.n
                _, item = connection.popleft()
                work, self.debt[site] = item.cost + self.debt[site], 0.0
                self.at(self.now + work, partial(self.finish, site, item))
                self.forward(producer)
                self.fill(producer)
                return
        self.waiting[site] = self.now
        arrivals = [connection[0][0] for connection in self.connections[site] if connection]
        if arrivals:
            self.at(min(arrivals), partial(self.arrived, site))

    def finish(self, site, item):
        self.processed.append((self.now, site, item.producer, item.number))
        self.serve(site)
