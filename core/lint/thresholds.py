"""From where on a finding is one: every threshold of the lint, each with its reason."""

CHANNELS = 8
"""Where no channel count is said, findings are judged for as many as `adapt check` and the README take."""

FEW_KEYS_A_CHANNEL = 8
"""Hashing k equal keys over N channels leaves the fullest with about k/N + sqrt(2 ln N k/N): with 8 keys a channel
that is 1.7 times the mean even though no key is heavy. With fewer, what hashing gives is a matter of luck."""

DEFAULT_KEY_SHARE = 0.01
"""A key that looks like "none" and has one row in a hundred: below that it moves no channel's load by 10 % at up to
ten channels, so that no conclusion hangs on it."""

GRANULAR = 0.95
"""So many rows on whole minutes, hours or days are a clock of that grain: at random one row in sixty million falls on
a whole minute by the microsecond, one in sixty by the second. The rest leaves room for a second, finer source."""

MINUTE_SHARE = 0.25
"""One minute of the hour with a quarter of all rows, fifteen times its share. It must hold so much of the rows and of
the average hour alike, so that one burst in one hour is none."""

HOURS_FOR_MINUTES = 24
"""Hours that must have rows before minutes of the hour are judged: with one row in each of 24 hours, a minute has a
quarter of them by chance in less than one trace in five thousand."""

OUTLIERS = 64
"""A handful: no more rows than this at each end of a trace are taken for dates gone wrong, and at most one in a
hundred. More than that is a part of the stream."""

OUTLIER_GAP = 0.25
"""What lies beyond a gap of a quarter of the span of all other rows belongs to another time. Of n rows at random such
a gap has the chance n 0.75^n: none, in any sample worth reading."""

OUTLIER_NEIGHBOUR_GAP = 0.01
"""Once some rows are outliers, those beyond a gap of a hundredth of the span, and of 100 times the mean distance of
rows, are of the same making."""

LATE_SHARE = 0.01
"""One row in a hundred out of time order, in the order of the source: below that it is what networks do."""

LATE_SPAN = 0.01
"""Rows late by more than a hundredth of the trace's span are no jitter: the source is in another order."""

BLOCKS = 0.75
"""Three of four rows with the key of the row before: keys come in blocks of four rows and more. At random that is the
sum of squared shares, which must be below half of this, so that the order and not the skew is at work."""

DRIFT_NOTE, DRIFT_WARNING = 0.10, 0.25
"""The part of the heavy keys' load that sits on other keys in the second half than in the first, above what chance
gives: a tenth moves the fullest of ten channels noticeably; with a quarter, a plan made from the first half is
about another stream."""

DRIFT_ROWS = 1000
"""Rows that the heavy keys must have for their drift to be judged."""

TURNOVER = 0.20
"""The share of the first half's keys that do not come again although they would if rows were shuffled: a fifth is far
beyond sampling (four standard errors of 2048 sampled keys are 0.09)."""

TURNOVER_KEYS = 100
"""Sampled keys of the first half that there must be for turnover to be judged."""

STANDARD_ERRORS = 4.0
"""What is called beyond chance is so by four standard errors: one in thirty thousand, for some twenty rules."""

FEW_ROWS = 1000
"""With fewer rows nothing below a share of a few per cent can be told from chance."""

F_MAX_ERROR = 0.20
"""The 95 % interval of the heaviest key's share, as a part of it: half as wide, it takes about 96 rows of that key;
then 1 / f_max, the useful channels, is known to a fifth."""

F_MAX_MATTERS = 1 / 64
"""A heaviest key that is surely lighter than this leaves 64 channels even; its share need not be known."""

DAYS_S = 2 * 86400.0
"""Two days: on less, no time of day was seen twice."""

SKEW_RATIO = 2.0
"""The heaviest key by cost or bytes has twice the share that the heaviest by rows has: half as many channels are
useful."""

CLOCKS = 16
"""Streams whose clocks are compared, by falling rows; keys are taken for streams where there are no more than these."""

CLOCK_BINS = 8192
"""Time bins in which the activity of streams is held: 5.7 days of minutes, 57 days of ten minutes; later rows are left
out."""

CLOCK_LAG_S = 14 * 3600
"""Clocks are compared at every half hour up to this: no zone is farther from UTC."""

CLOCK_CORRELATION = 0.15
"""Correlation of the short-lived ups and downs of two streams at the best shift; at random it is below 0.05 in 8192
bins for all 57 shifts of all 120 pairs."""

CLOCK_RATIO = 3.0
"""The best shift must correlate that many times better than the clocks as they stand, and than any other shift."""
