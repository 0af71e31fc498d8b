"""The same work by each client of a broker: so many messages published, and consumed with acknowledgements.

A module ``on_<client>`` has ``publish(url, queue, samples, clock)`` and ``consume(url, queue, count,
clock)``; the latter gives what arrived, as samples. What opens and closes the connection is not within the
clock. `sessions` has whole sessions of clients as they are.
"""

CLIENTS = ("aiormq", "aio_pika", "amqpstorm", "rabbitpy", "pika_blocking", "pika_select", "pyamqp", "kombu")
ON_ASYNCIO = ("aiormq", "aio_pika")
UVLOOP = "AMQPCODEC_CLIENT_UVLOOP"
"""Variable of the environment: clients on asyncio run on uvloop."""

SAMPLED = "AMQPCODEC_CLIENT_SAMPLED"
"""Variable of the environment: say as well which functions the time goes to."""

LEFT_ALONE = {"Basic.RecoverAsync"}  # classes that are never accelerated: this one warns when it is made
PEERS = {
    "aiormq": "pamqp",
    "aio_pika": "pamqp",
    "amqpstorm": "pamqp",
    "rabbitpy": "pamqp",
    "pika_blocking": "pika",
    "pika_select": "pika",
    "pyamqp": "amqp",
    "kombu": "amqp",
}
