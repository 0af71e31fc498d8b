"""A certificate for 127.0.0.1 and localhost, made when it is asked for."""

from __future__ import annotations

import ssl


def make() -> tuple[ssl.SSLContext, bytes]:
    """Return the context of a server, and the certificate of its authority as PEM.

    Raises:
        ImportError: the extra ``testing`` is not installed.
    """
    try:
        import trustme
    except ImportError as error:
        raise ImportError("tls=True makes a certificate by trustme: install amqpcodec[testing]") from error

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context, authority.cert_pem.bytes()


__all__ = ["make"]
