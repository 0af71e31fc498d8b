"""Runs the whole test suite on a build with AddressSanitizer and UndefinedBehaviorSanitizer.

    python fuzz/asan.py [pytest options]

The build is gcc's, in build/asan. Tests that run programs of their own hand them this environment on, and
so test the same build; compilers that are run by tests are not concerned by it.
"""

from __future__ import annotations

import subprocess
import sys

import sanitized


def main(options: list[str]) -> int:
    """Build and test; what pytest ended with."""
    try:
        environment = sanitized.environment("asan", sanitized.build("asan"))
    except sanitized.MissingToolError as error:
        print(f"test-asan: {error}", file=sys.stderr)
        return 2
    environment["AMQPCODEC_SANITIZED"] = "1"
    # The interpreter keeps objects to its end; what leaks while it runs is found by leaks.py.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=sanitized.ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
