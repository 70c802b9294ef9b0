"""Generators by name."""

from collections.abc import Callable, Mapping

from adapt.traces.generators.calls import CallStream
from adapt.traces.generators.clicks import ClickStream
from adapt.traces.generators.keyed import packet_stream, self_similar_stream, zipf_stream
from adapt.traces.generators.names import GeneratorName
from adapt.traces.generators.sales import SaleStream
from adapt.traces.generators.write import NamedStream

GENERATORS: Mapping[GeneratorName, Callable[..., NamedStream]] = {
    GeneratorName.CALLS: CallStream,
    GeneratorName.CLICKS: ClickStream,
    GeneratorName.PACKETS: packet_stream,
    GeneratorName.SALES: SaleStream,
    GeneratorName.SELF_SIMILAR: self_similar_stream,
    GeneratorName.ZIPF: zipf_stream,
}
"""Each returns a stream for `generate`, and takes its own parameters by name."""
