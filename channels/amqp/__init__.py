"""Events and answers over AMQP 0-9-1. docs/reference/amqp.md lists exchanges and queues."""
