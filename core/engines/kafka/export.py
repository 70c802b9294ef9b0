"""Export of plans to Kafka producers: the channel is the partition."""

from adapt.core.engines.exporter import Bundle, ExportablePlan

_USE = """\
Channel c of the plan is partition c of a topic with {channels} partitions. In Python, with adapt installed (without
Spark or Java):

```python
from adapt.traces.deploy.kafka import Router

router = Router.load("{{folder}}/plan.json")
# confluent-kafka
producer.produce("topic", value=value, key=key, partition=router.partition(key))
# aiokafka, and kafka-python before 3.0
AIOKafkaProducer(partitioner=router)
# kafka-python 3.0 or later
KafkaProducer(partitioner=router.for_kafka_python())
```

A record without a key goes to the plan's null-key partition ({null}); `Router.load(..., nulls="spread")` spreads
such records over the partitions in turn. All producers of the topic must route by the same plan. A new plan moves keys;
`adapt partition diff` shows which. In other languages, read `plan.txt`; docs/plan-format.md describes its format.
"""


def kafka_bundle(plan: ExportablePlan, max_parallelism: int | None) -> Bundle:  # noqa: ARG001 - Kafka has no key groups
    """The plan only, for the router."""
    return Bundle({}, _USE.format(channels=plan.channels, null=plan.partitioner().channel_of(None)))
