"""Which releases of other libraries are known, by the SHA-256 of the files whose functions are replaced.

A version number says little: distributions patch what they ship. So the files of a library are read where
they lie, without importing them.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import find_spec

from .._generated.peers import NEWEST
from .._typing import NamedTuple
from ..errors import UnknownReleaseError

_FILES = {
    "pamqp": (
        "base", "body", "commands", "common", "constants", "decode", "encode", "exceptions", "frame",
        "header", "heartbeat",
    ),
    "pika": ("amqp_object", "compat", "data", "frame", "spec"),
    "pika loops": ("adapters/base_connection", "adapters/utils/io_services_utils", "callback", "connection"),
    "amqp": ("abstract_channel", "basic_message", "method_framing", "serialization", "spec", "utils"),
    "amqp loops": ("connection", "transport"),
}  # fmt: skip

# The digest of all files of an entry above; the releases that have them; their rules.
_KNOWN: dict[str, tuple[tuple[str, str, str], ...]] = {
    "pamqp": (
        ("8e3e03ec965eaedc3d37bf7ef7fc61dc2c5316a90872d74441df6ad96e974888", "3.3.0", "3.3"),
        ("d469ed57b72ece80c0f1a8c4dfdfbd546752b022d09662b4b94b0bbd4adec64e", "4.0.1", "4.0"),
    ),
    "pika": (
        ("6368b18d9e8b3a6d28fdaa54ff7ab91aac32b3b7aac8f7e6a565ab2958bbdf3d", "1.3.2", "1.3"),
        ("7ee7e3b2e9778d6c1147a9a6d28c0f7b4bab9d884eecb487106ec2b41ba61248", "1.4.0 to 1.4.4", "1.4"),
    ),
    "pika loops": (
        ("9360a0848610c6311a170672e5ea3515c6e1fd827db732695d28f34eedfa4762", "1.3.2", "1.3"),
        ("17bdbb88cd0e1b380a09f384e91800a687a09a0d1970ab07d24c63a98cefd198", "1.4.0 to 1.4.4", "1.4"),
    ),
    "amqp": (
        ("b4db64c80195a7a8097d4f801941eed20dd050f31dfeb7ab6833eacdd8871dba", "5.1.1 to 5.3.1", "5.2"),
        ("48d69514805866ca9fc267b0bf9c784f98ef734f7809ba450103d3d1e7ff0a08", "5.4.0", "5.4.0"),
        ("04547ec9c20f3d83cd4b9ac856c9bb2075b077377ce4326ec718f1eb27769b89", "5.4.1", "5.4.1"),
        ("6661a19a03c4820b137192a07780f0ceaeb2c5cf3ad9e1f9bf1f32acffc869ba", "5.4.2", "5.4.2"),
    ),
    "amqp loops": (
        ("6b0e460ff5306877ce4efca307996ac11d115bf31fe6646cab63b5f0fef8f475", "5.2.0", "5.2"),
        ("ababad9dd238cdcc137ed2853b2f63740e46651f47e1c0eec856a5e44a86e993", "5.3.0 to 5.3.1", "5.2"),
        ("891467a523a32f44dbe834ff429e7426f2dc0472cf8971f608c8dc9e77315956", "5.4.0 to 5.4.1", "5.4.1"),
        ("a293b1e483187c8b4073e7506b1df496da753e6461e481ba5d85adfd71c955d2", "5.4.2", "5.4.2"),
    ),
}


class Release(NamedTuple):
    """A release that can be accelerated.

    Attributes:
        version: as the library's metadata has it; empty where there is none.
        rules: by which it reads and writes, the key of `_facts.records`.
    """

    version: str
    rules: str


def release(peer: str, *, loops: bool = False, force: bool = False) -> Release:
    """The release of a library that is installed, imported or not.

    Args:
        peer: ``"pamqp"``, ``"pika"`` or ``"amqp"``.
        loops: the functions of its read loop are to be replaced too.
        force: treat an unknown release as the newest known one.

    Raises:
        ModuleNotFoundError: the library is not installed.
        UnknownReleaseError: its files are not those of a known release.
    """
    spec = find_spec(peer)
    if spec is None or spec.origin is None:
        message = f"{peer} is not installed, and amqpcodec does not bring it: pip install {peer}"
        raise ModuleNotFoundError(message, name=peer)
    rules = ""
    for name in (peer, f"{peer} loops") if loops and f"{peer} loops" in _FILES else (peer,):
        digest = digest_of(name, spec)
        known = {entry[0]: entry[2] for entry in _KNOWN[name]}
        if digest not in known and not force:
            raise UnknownReleaseError(_refusal(peer, name, spec))
        rules = rules or known.get(digest, NEWEST[peer])
    return Release(_version(peer, spec), rules)


def releases_of(name: str) -> tuple[str, ...]:
    """The releases of a library, or of its read loop, that are known."""
    return tuple(releases for _, releases, _ in _KNOWN[name])


def digest_of(name: str, spec: ModuleSpec) -> str:
    """The digest of the files of an entry; empty where one is missing or not what Python would import.

    Args:
        name: the library, or the library and ``"loops"``.
        spec: that of the library's package.
    """
    folder = _folder(spec)
    total = sha256()
    for file in _FILES[name]:
        try:
            octets = spec.loader.get_data(f"{folder}/{file}.py")  # type: ignore[union-attr]
        except OSError:
            return ""
        total.update(sha256(octets).digest())
        if any(_is_file(f"{folder}/{file}{suffix}") for suffix in EXTENSION_SUFFIXES):
            return ""  # compiled, and preferred to the text
    return total.hexdigest()


def _folder(spec: ModuleSpec) -> str:
    return str(spec.origin).replace("\\", "/").rpartition("/")[0]


def _is_file(path: str) -> bool:
    try:
        with open(path, "rb"):
            return True
    except OSError:
        return False


def _version(peer: str, spec: ModuleSpec) -> str:
    """The version in the name of the folder of metadata beside the package: what else reads it takes long."""
    import os

    try:
        beside = os.listdir(_folder(spec).rpartition("/")[0])
    except OSError:
        return ""
    for name in beside:
        package, _, version = name.removesuffix(".dist-info").partition("-")
        if name.endswith(".dist-info") and package.lower() == peer:
            return version
    return ""


def _refusal(peer: str, name: str, spec: ModuleSpec) -> str:
    version = _version(peer, spec)
    files = "its files" if name == peer else "the files of its read loop"
    return (
        f"{peer} {version or 'of unknown version'}: {files} are not those of a release that is known"
        f" ({', '.join(releases_of(name))}); force=True takes it if its classes are as expected"
    )
