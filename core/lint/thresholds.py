"""Lint thresholds, each with its reason."""

CHANNELS = 8
"""Channel count for rules that need one; the default of `adapt check`."""

FEW_KEYS_A_CHANNEL = 8
"""Hashing k equal keys over N channels leaves the busiest with about k/N + sqrt(2 ln N k/N): with 8 keys per channel,
1.7 times the mean although no key is hot. With fewer keys, the result of hashing is random."""

DEFAULT_KEY_SHARE = 0.01
"""Share of a placeholder key: with less than one row in a hundred it changes no channel's load by 10 % at up to ten
channels, so no conclusion depends on it."""

GRANULAR = 0.95
"""Share of rows on whole minutes, hours or days that makes this the granularity: a random time in microseconds falls on
a whole minute once in sixty million, a random time in seconds once in sixty. The rest allows for a finer second
source."""

MINUTE_SHARE = 0.25
"""Share of one minute of the hour: fifteen times an even share, both of all rows and of the average hour, so that one
burst in one hour does not count."""

HOURS_FOR_MINUTES = 24
"""Fewest hours with rows to judge minutes of the hour: with one row in each of 24 hours, a minute has a quarter of them
at random in less than one trace in five thousand."""

OUTLIERS = 64
"""Most outlier dates at each end of a trace, and at most one row in a hundred; more are part of the stream."""

OUTLIER_GAP = 0.25
"""Gap of outliers, relative to the span of all other rows. Among n random rows such a gap has a probability of
n 0.75^n, which is negligible."""

OUTLIER_NEIGHBOUR_GAP = 0.01
"""Once there are outliers, rows beyond a gap of this part of the span, and of 100 mean row distances, are outliers
too."""

LATE_SHARE = 0.01
"""Share of late rows in the source; below one in a hundred is normal network jitter."""

LATE_SPAN = 0.01
"""Lateness beyond this part of the trace's span is not jitter: the source has another order."""

BLOCKS = 0.75
"""Share of rows with the key of the row before: three of four means blocks of four or more rows. In random order the
share is the sum of squared key shares, which must be below half of this, so that order and not skew is the reason."""

DRIFT_NOTE, DRIFT_WARNING = 0.10, 0.25
"""Share of the hot keys' load that moves to other keys between both halves, beyond random variation: a tenth changes
the busiest of ten channels noticeably; with a quarter, a plan built from the first half no longer fits."""

DRIFT_ROWS = 1000
"""Fewest rows of the hot keys to judge drift."""

TURNOVER = 0.20
"""Share of the first half's keys that do not return although they would with shuffled rows: a fifth is far beyond the
sampling error (four standard errors of 2048 sampled keys are 0.09)."""

TURNOVER_KEYS = 100
"""Fewest sampled keys of the first half to judge turnover."""

STANDARD_ERRORS = 4.0
"""Significance level: four standard errors, one in thirty thousand, for about twenty rules."""

FEW_ROWS = 1000
"""With fewer rows, shares below a few percent are indistinguishable from noise."""

F_MAX_ERROR = 0.20
"""Relative half-width of the 95 % interval of the top-key share: takes about 96 rows of that key; the useful workers,
1 / f_max, are then known to a fifth."""

F_MAX_MATTERS = 1 / 64
"""A top-key share certainly below this leaves 64 channels balanced and need not be known."""

DAYS_S = 2 * 86400.0
"""Two days; in less, no time of day occurs twice."""

SKEW_RATIO = 2.0
"""Top-key share by cost or bytes over top-key share by rows: at 2, half as many workers are useful."""

CLOCKS = 16
"""Most streams whose clocks are compared, by descending rows; with at most this many keys, keys serve as streams."""

CLOCK_BINS = 8192
"""Time bins of the activity of streams: 5.7 days of minutes, 57 days of ten minutes; later rows are ignored."""

CLOCK_LAG_S = 14 * 3600
"""Largest shift, in steps of half an hour; no time zone is farther from UTC."""

CLOCK_CORRELATION = 0.15
"""Correlation of the short-term activity of two streams at the best shift; for random streams of 8192 bins it is below
0.05 for all 57 shifts of all 120 pairs."""

CLOCK_RATIO = 3.0
"""How many times the best shift must correlate better than no shift and than any other shift."""

COSTLY = 1.1
"""Design effect of a sample from which it is reported."""
