"""Uploads in parts that are over: S3 says that they are not there, moto fails on them."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from moto.backends import get_backend

from sift_client.local.calls import Answer, Environ

_BODY = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>NoSuchUpload</Code><Message>The specified upload does not exist. The upload ID may be invalid, or the \
upload may have been aborted or completed.</Message></Error>"""


def refuse_lost_upload(environ: Environ, account: str) -> Answer | None:
    """S3's answer to a call about an upload that is not there; None for every other call."""
    upload = parse_qs(environ.get("QUERY_STRING", "")).get("uploadId")
    if upload is None:
        return None
    backend: Any = get_backend("s3")[account]["aws"]
    if any(upload[0] in bucket.multiparts for bucket in backend.buckets.values()):
        return None
    headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(_BODY)))]
    return Answer("404 Not Found", headers, _BODY)
