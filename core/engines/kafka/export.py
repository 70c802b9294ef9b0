"""A plan for producers of Kafka: the channel is the partition."""

from adapt.core.engines.bundle import Bundle
from adapt.core.engines.exporter import ExportablePlan

_USE = """\
Channel c of the plan is partition c of a topic with {channels} partitions. In Python, with adapt installed (no Spark
and no Java are needed):

```python
from adapt.traces.deploy.kafka import Router

router = Router.load("{{folder}}/plan.json")
# confluent-kafka
producer.produce("topic", value=value, key=key, partition=router.partition(key))
# aiokafka, and kafka-python before 3.0
AIOKafkaProducer(partitioner=router)
# kafka-python from 3.0 on
KafkaProducer(partitioner=router.for_kafka_python())
```

A record without a key goes where the plan puts the null key (partition {null}); `Router.load(..., nulls="spread")`
deals such records out in turn. Every producer of the topic has to route by the same plan, and a change of plans moves
keys: `adapt partition diff` says which. In other languages read `plan.txt`, whose format is described in
docs/plan-format.md.
"""


def kafka_bundle(plan: ExportablePlan, max_parallelism: int | None) -> Bundle:  # noqa: ARG001 - Kafka has no key groups
    """The plan alone; the router reads it."""
    return Bundle({}, _USE.format(channels=plan.channels, null=plan.partitioner().channel_of(None)))
