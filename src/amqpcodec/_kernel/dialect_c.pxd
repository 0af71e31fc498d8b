from .wire cimport BODY, HEADER, HEARTBEAT, METHOD

# Dialect stays a Python class: it is read when decoders and encoders are made, not while they work.
