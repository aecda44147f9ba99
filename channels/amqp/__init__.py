"""Events out and answers in over AMQP 0-9-1. docs/reference/amqp.md says what is declared."""
