"""Algorithms 2 to 4 line by line, in exact decimal arithmetic: what the compiled constructions are held against.

Every sum is taken anew and every candidate priced from nothing. Names are the paper's, as far as Python can spell
them. Where the paper is silent or wrong, the reading is the one that the docstrings of the constructions state.

Source: partitioning functions, sections 4.2 and 4.3.
"""

from decimal import Decimal, getcontext
from functools import lru_cache, partial
from itertools import product

getcontext().prec = 36

TIE = Decimal("1e-12")
INFINITE = Decimal("Infinity")


@lru_cache(100_000)
def log(x):
    return x.ln()


@lru_cache(100_000)
def root(x, k):
    return x ** (Decimal(1) / k)


UTILITY = {
    "A": lambda rho, gamma: rho,
    "APM": lambda rho, gamma: rho + gamma,
    "APLM": lambda rho, gamma: rho + log(1 + gamma),
    "ATM": lambda rho, gamma: rho * (1 + gamma),
    "ATLM": lambda rho, gamma: rho * (1 + log(1 + gamma)),
}


def exactly(number):
    """A float as a number that adds up without rounding."""
    return int(number) if number == int(number) else Decimal(number)


class Step:
    """The problem's data, and the equations over a partial explicit map `H`, from key (a row) to channel."""

    def __init__(self, problem):
        self.N = problem.channels
        self.old = problem.home.tolist()
        self.start = problem.start.tolist()
        self.beta = [[exactly(load) for load in row] for row in problem.loads]
        self.beta_s = [exactly(state) for state in problem.state]
        self.units = [Decimal(unit) for unit in problem.units.tolist()]
        self.counts = [int(count) for count in problem.counts]
        self.measured = bool(problem.resources.sources)
        self.f = [self.moved(d, None) for d in range(len(self.counts))]
        self.theta = [Decimal(theta) for theta in problem.theta.tolist()]
        self.budget = INFINITE if problem.budget is None else exactly(problem.budget())
        self.m = exactly(problem.owed)
        self.ideal = Decimal(problem.ideal) if self.measured else Decimal(self.m_all(problem)) / self.N
        self.U = UTILITY[problem.utility.value]
        self.pinned = {d: i for d, i in enumerate(problem.pinned.tolist()) if i >= 0}

    def m_all(self, problem):
        return round(problem.ideal * problem.channels)

    def moved(self, d1, d2):
        """f(d1) - f(d2) without its sign; or, where loads were measured, the largest share that changes channels."""
        if not self.measured:
            return abs(self.counts[d1] - (0 if d2 is None else self.counts[d2]))
        flows = [beta[d1] - (0 if d2 is None else beta[d2]) for beta in self.beta]
        return max((abs(flow) * unit for flow, unit in zip(flows, self.units, strict=True)), default=Decimal(0))

    def rho(self, H):
        """Eqs. 19 and 20; constant resources are left out, and a resource without load is balanced."""
        if not self.beta:
            return Decimal(0)
        rho = Decimal(1)
        for beta, theta in zip(self.beta, self.theta, strict=True):
            L = [0] * self.N
            for d, i in H.items():
                L[i] += beta[d]
            rho *= (max(L) - min(L)) / (theta * sum(L) / self.N) if sum(L) else 0
        return root(rho, len(self.beta))

    def allows(self, H):
        """Whether what migrates by choice keeps to the limit."""
        left = [d for d, i in H.items() if i != self.old[d] < self.N and d not in self.pinned]
        return sum(self.beta_s[d] for d in left) <= self.budget

    def gamma(self, m):
        return m / self.ideal if self.ideal else Decimal(0)


def first_least(scored):
    """The first candidate whose score is within a relative 1e-12 of the least."""
    scored = list(scored)
    least = min(score for score, _ in scored)
    return next(candidate for score, candidate in scored if score <= least + TIE * abs(least))


def pinned_first(step):
    """The mapping of the pinned keys alone, and what has migrated with it."""
    return dict(step.pinned), step.m + sum(step.beta_s[d] for d, i in step.pinned.items() if i != step.old[d])


def literal_scan(problem):
    """Algorithm 2."""
    step = Step(problem)
    H, m = pinned_first(step)
    for d in range(len(step.f)):
        if d in step.pinned:
            continue
        h = step.old[d]
        j = first_least(
            (step.U(step.rho(H | {d: i}), step.gamma(m + step.beta_s[d] * (i != h))), i)
            for i in range(step.N)
            if i == h or step.allows(H | {d: i})
        )
        m += step.beta_s[d] * (j != h)
        H[d] = j
    return [H[d] for d in range(len(step.f))]


def literal_redist(problem):
    """Algorithm 3; keys that weigh nothing come last, for their utility undivided."""
    step = Step(problem)
    H, m = pinned_first(step)
    Dc = [d for d in range(len(step.f)) if d not in step.pinned]
    while Dc:
        heavy = [c for c in Dc if step.f[c]] or Dc
        d, j = first_least(
            (
                step.U(step.rho(H | {c: i}), step.gamma(m + (i != step.old[c]) * step.beta_s[c])) / (step.f[c] or 1),
                (c, i),
            )
            for c, i in product(heavy, range(step.N))
            if i == step.old[c] or step.allows(H | {c: i})
        )
        m += (j != step.old[d]) * step.beta_s[d]
        H[d] = j
        Dc.remove(d)
    return [H[d] for d in range(len(step.f))]


def readjusted(H, i, d1, j, d2):
    """A (Eq. 21)."""
    return H | {d1: j} if d2 is None else H | {d1: j, d2: i}


def migrates(step, i, d1, j, d2):
    """M (Eq. 22), with the plus that a line break lost."""
    p = step.old
    cost = step.beta_s[d1] * (p[d1] == i) - step.beta_s[d1] * (p[d1] == j)
    if d2 is not None:
        cost += step.beta_s[d2] * (p[d2] == j) - step.beta_s[d2] * (p[d2] == i)
    return cost


def literal_readj(problem, printed=False):
    """Algorithm 4; `printed` takes it at its word about u."""
    step = Step(problem)
    H = dict(enumerate(step.start))
    m = step.m + sum(step.beta_s[d] for d in H if H[d] != step.old[d])
    u = Decimal(0)
    while True:
        v, kept = None, []
        g = -INFINITE
        rho = step.rho(H)
        if not printed:
            u = step.U(rho, step.gamma(m))
        for i, j in product(range(step.N), repeat=2):
            if i == j:
                continue
            for d1 in [d for d in H if H[d] == i]:
                for d2 in [None, *(d for d in H if H[d] == j)]:
                    if d1 in step.pinned or d2 in step.pinned:
                        continue
                    w = i, d1, j, d2
                    a = step.rho(readjusted(H, *w))
                    if a >= rho * (1 - TIE):
                        continue
                    if migrates(step, *w) > 0 and not step.allows(readjusted(H, *w)):
                        continue
                    u_new = step.U(a, step.gamma(m + migrates(step, *w)))
                    g_new = (u - u_new) / step.moved(d1, d2)
                    kept.append((-g_new, w))
                    if printed and (v is None or g_new - g > TIE * max(abs(g), abs(g_new))):
                        v, g, u = w, g_new, u_new
        if not kept:
            return [H[d] for d in range(len(step.f))]
        if not printed:
            v = first_least(kept)
        m += migrates(step, *v)
        H = readjusted(H, *v)


LITERAL = {
    "scan": literal_scan,
    "redist": literal_redist,
    "readj": literal_readj,
    "readj-printed": partial(literal_readj, printed=True),
}
"""Each takes a problem of whole counts, with loads of any kind, and returns the channel of each key."""
