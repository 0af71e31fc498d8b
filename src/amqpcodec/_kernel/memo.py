"""The lock under which a memo is looked at or set, but never made: several threads may read one raw record.

It is re-entrant, since a finaliser may run meanwhile and read another.
"""

from __future__ import annotations

import os
from _thread import RLock

MEMO = RLock()

if hasattr(os, "register_at_fork"):
    # Another thread may hold it in the parent, and does not exist in the child.
    os.register_at_fork(after_in_child=MEMO._at_fork_reinit)  # type: ignore[attr-defined]  # types leave it out
