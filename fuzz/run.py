"""One target under atheris: ``python run.py TARGET [libFuzzer options] [corpus folders]``.

Started by `campaign.py`, which prepares the build, the environment and the seeds.
"""

from __future__ import annotations

import sys

import atheris

# Where much of a target is Python; the others are guided by the coverage of the extension alone.
PYTHON = {
    "capture": ["amqpcodec.capture"],
    "packets": ["amqpcodec.capture"],
    "session": ["amqpcodec.capture", "amqpcodec.arrow.session", "amqpcodec._state", "amqpcodec._columns"],
}


def main(target: str, options: list[str]) -> None:
    if target in PYTHON:
        with atheris.instrument_imports(include=PYTHON[target]):
            import targets
    else:
        import targets

    atheris.Setup([sys.argv[0], *options], targets.TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
