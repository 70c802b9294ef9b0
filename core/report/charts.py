"""The charts there are. Each is made from a table, names the columns it reads, and draws no number the table lacks.

A chart says in its sentence what it shows, and says there too when points were left out. Cells that are not finite
numbers leave a gap.
"""

from adapt.core.charts.chart import Chart
from adapt.core.charts.over_time import imbalance_per_period, migration_per_period, rate_over_time
from adapt.core.fit.network_diagram import network_charts
from adapt.core.fit.replay.charts import shedding_charts
from adapt.core.mechanisms.charts import comparison_charts
from adapt.core.report.key_charts import channel_loads, rank_frequency, top_keys
from adapt.core.report.scheme_charts import comparison, imbalance_by_channels, migration_by_channels, three_way_trade
from adapt.core.report.verdict_charts import channels_before_after, life_lines, skew_over_time
from adapt.core.stage.charts import elastic_charts, stage_charts

__all__ = [
    "Chart",
    "channel_loads",
    "channels_before_after",
    "comparison",
    "comparison_charts",
    "elastic_charts",
    "imbalance_by_channels",
    "imbalance_per_period",
    "life_lines",
    "migration_by_channels",
    "migration_per_period",
    "network_charts",
    "rank_frequency",
    "rate_over_time",
    "shedding_charts",
    "skew_over_time",
    "stage_charts",
    "three_way_trade",
    "top_keys",
]
