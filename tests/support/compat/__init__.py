"""Support of `tests/compat`: a library as it is, beside the same library accelerated."""
