"""The AMQP side of the port, by Proton."""

from broker.amqp_browser import AmqpBrowser
from broker.amqp_consumer import AmqpConsumer
from broker.amqp_publisher import AmqpPublisher

__all__ = ["AmqpBrowser", "AmqpConsumer", "AmqpPublisher"]
