"""The reply codes as exceptions, for what a peer says in connection.close and channel.close.

There is one class for each reply code of the dialects, such as `AmqpNotFound`, and `REPLY_ERRORS` has them by
code: ``raise REPLY_ERRORS[close.reply_code](close.reply_text)``.
"""

from __future__ import annotations

from ._generated.reply_codes import *
from ._generated.reply_codes import __all__ as __all__
