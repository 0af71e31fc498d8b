"""``python -m amqpcodec``: the `amqpcodec` command."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
