"""What overwrites slots of CPython's types."""
