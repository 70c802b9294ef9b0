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

    The engine of `core/stage`, one event at a time. No disturbances and no moves. Tuples come from `pull(producer,
    now)`, which gives an item, or the time of the next one, or None when there are none.
    """

    def __init__(self, workers, owner_of, pull, buffer=1, credits=24, latency=70e-6, produce=0.5e-6):
        self.n, self.owner_of, self.pull = workers, owner_of, pull
        self.buffer, self.credits, self.latency, self.produce = buffer, credits, latency, produce
        self.now = 0.0
        self.pools = [{} for _ in range(workers)]  # of each producer, by partition, in cyclic order
        self.held = [0] * workers
        self.connections = [
            [deque() for _ in range(workers)] for _ in range(workers)
        ]  # worker, producer: (arrival, item)
        self.poll = [0] * workers
        self.waiting = [None] * workers  # since when a consumer waits
        self.debt = [0.0] * workers
        self.asleep = [False] * workers  # whether a producer waits for its next row
        self.processed = []
        self.order = count()
        self.heap = []
        for worker in range(workers):
            self.at(0.0, partial(self.serve, worker))
        for producer in range(workers):
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
            worker = self.owner_of.worker(partition)
            if len(self.connections[worker][producer]) < self.credits:
                items = pool.pop(partition)
                item = items.popleft()
                if items:
                    pool[partition] = items  # behind the others
                self.held[producer] -= 1
                arrival = self.now + self.latency
                self.connections[worker][producer].append((arrival, item))
                if self.waiting[worker] is not None:
                    self.at(arrival, partial(self.arrived, worker))
                return

    def arrived(self, worker):
        if self.waiting[worker] is not None:
            self.debt[worker] = max(0.0, self.debt[worker] - (self.now - self.waiting[worker]))
            self.waiting[worker] = None
            self.serve(worker)

    def serve(self, worker):
        """Take the next arrival, polling the connections in turn."""
        for step in range(self.n):
            producer = (self.poll[worker] + step) % self.n
            connection = self.connections[worker][producer]
            if connection and connection[0][0] <= self.now:
                self.poll[worker] = (producer + 1) % self.n
                _, item = connection.popleft()
                work, self.debt[worker] = item.cost + self.debt[worker], 0.0
                self.at(self.now + work, partial(self.finish, worker, item))
                self.forward(producer)
                self.fill(producer)
                return
        self.waiting[worker] = self.now
        arrivals = [connection[0][0] for connection in self.connections[worker] if connection]
        if arrivals:
            self.at(min(arrivals), partial(self.arrived, worker))

    def finish(self, worker, item):
        self.processed.append((self.now, worker, item.producer, item.number))
        self.serve(worker)
