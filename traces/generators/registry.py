"""Every generator by its name."""

from collections.abc import Callable, Mapping

from adapt.traces.generators.clicks import generate_clicks
from adapt.traces.generators.names import GeneratorName
from adapt.traces.generators.sales import generate_sales
from adapt.traces.generators.self_similar import generate_self_similar
from adapt.traces.generators.zipf import generate_zipf
from adapt.traces.ingest.ingest import Ingested

GENERATORS: Mapping[GeneratorName, Callable[..., Ingested]] = {
    GeneratorName.CLICKS: generate_clicks,
    GeneratorName.SALES: generate_sales,
    GeneratorName.SELF_SIMILAR: generate_self_similar,
    GeneratorName.ZIPF: generate_zipf,
}
"""Each takes the place of the trace and its own parameters by name."""
