"""``spark-submit .../pyspark_amqp/__main__.py convert ...``: `amqpcodec spark` as a script of Spark's."""

import sys

from amqpcodec.cli import main

if __name__ == "__main__":
    sys.exit(main(["spark", *sys.argv[1:]]))
