"""The local stack: the same template, run on this machine."""

from sift_client.local.errors import TemplateError
from sift_client.local.stack import LocalStack

__all__ = ["LocalStack", "TemplateError"]
