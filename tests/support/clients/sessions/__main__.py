"""One session, as `support.clients.sessions` says."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from uuid import uuid4

client, url = sys.argv[1:]
seen = import_module(f"support.clients.sessions.on_{client}").session(url, f"amqpcodec-{uuid4()}")
print(json.dumps(seen))
