"""What people install to use sift: the Python client, the `sift` command and the local stack."""

from sift_client.client import Sift
from sift_client.errors import SiftApiError, SiftClientError, SiftConnectionError

__all__ = ["Sift", "SiftApiError", "SiftClientError", "SiftConnectionError"]
