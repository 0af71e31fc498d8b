"""From frames to columns of values, without any library for columns: what `amqpcodec.arrow` stands on."""
