"""Reads the dialect files of spec/ and writes the generated half of amqpcodec."""
