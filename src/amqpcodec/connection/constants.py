"""Numbers of the state machine. In the compiled build they are constants of C as well."""

from __future__ import annotations

# The two sides.
CLIENT = 0
SERVER = 1

# What a method does beyond being a request, a reply or a content.
ORDINARY = 0
OPEN_CHANNEL = 1
CLOSE = 2
CLOSE_OK = 3
FLOW = 4
BLOCKED = 5
UNBLOCKED = 6
PUBLISH = 7
DELIVER = 8
GET_OK = 9
SETTLE = 10
CONSUME = 11
CONSUME_OK = 12
CANCEL = 13
CANCEL_OK = 14
RECOVER = 15
RECOVER_OK = 16
TX_SELECT = 17
TX_COMMIT = 18
TX_ROLLBACK = 19
CONFIRM_SELECT = 20
HANDSHAKE = 21

# States of a channel; 0 is closed.
CHANNEL_OPENING = 1
CHANNEL_OPEN = 2
CHANNEL_CLOSING = 3

# Modes of a channel.
PLAIN_MODE = 0
TX_MODE = 1
CONFIRM_MODE = 2

# What a connection waits for, in order.
GREETING = 0
START = 1
START_OK = 2
LOGIN = 3
SECURE_OK = 4
TUNE_OK = 5
OPEN_REQUEST = 6
OPENING = 7
RUNNING = 8
LEAVING = 9
OVER = 10
