"""The bucket on S3. Its lifecycle rule removes what outlived every job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from botocore.exceptions import ClientError

from sift import aws
from sift.blobs.ports import REMOVE_BATCH, UploadLost
from sift.errors import Unavailable

#: The upload was completed or aborted, or a part is not the one that was named, or is too small.
_LOST = frozenset({"NoSuchUpload", "InvalidPart", "InvalidPartOrder", "EntityTooSmall"})


class S3Blobs:
    """`client` is a boto3 S3 client made with `signature_version="s3v4"`, which presigned links need."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    async def put(self, key: str, body: bytes, media_type: str) -> None:
        await aws.call(self._client.put_object, Bucket=self._bucket, Key=key, Body=body, ContentType=media_type)

    async def put_file(self, key: str, file: BinaryIO, media_type: str) -> None:
        # One PUT, of up to 5 GB: an object is there whole or not at all.
        await aws.call(self._client.put_object, Bucket=self._bucket, Key=key, Body=file, ContentType=media_type)

    async def get(self, key: str) -> bytes | None:
        try:
            answer = await aws.call(self._client.get_object, Bucket=self._bucket, Key=key)
        except ClientError as error:
            if aws.error_code(error) == "NoSuchKey":
                return None
            raise
        body: bytes = await asyncio.to_thread(answer["Body"].read)
        return body

    async def remove(self, prefix: str) -> bool:
        listed = await aws.call(self._client.list_objects_v2, Bucket=self._bucket, Prefix=prefix, MaxKeys=REMOVE_BATCH)
        objects = [{"Key": found["Key"]} for found in listed.get("Contents", ())]
        if objects:
            answer = await aws.call(
                self._client.delete_objects, Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True}
            )
            if answer.get("Errors"):
                raise Unavailable(f"remove: {answer['Errors'][0].get('Code')}")
        return bool(listed["IsTruncated"])

    async def link(self, key: str, seconds: int) -> str:
        parameters = {"Bucket": self._bucket, "Key": key}
        url: str = self._client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=seconds)
        return url

    async def begin_upload(self, key: str, media_type: str) -> str:
        answer = await aws.call(
            self._client.create_multipart_upload, Bucket=self._bucket, Key=key, ContentType=media_type
        )
        upload: str = answer["UploadId"]
        return upload

    async def put_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        answer = await self._of_upload(self._client.upload_part, key, upload, PartNumber=number, Body=body)
        tag: str = answer["ETag"]
        return tag

    async def complete_upload(self, key: str, upload: str, tags: Sequence[str]) -> None:
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
        await self._of_upload(self._client.complete_multipart_upload, key, upload, MultipartUpload={"Parts": parts})

    async def abort_upload(self, key: str, upload: str) -> None:
        try:
            await self._of_upload(self._client.abort_multipart_upload, key, upload)
        except UploadLost:
            return

    async def exists(self, key: str) -> bool:
        try:
            await aws.call(self._client.head_object, Bucket=self._bucket, Key=key)
        except ClientError as error:
            if aws.error_code(error) in {"404", "NoSuchKey"}:  # a HEAD has no body that could hold a code
                return False
            raise
        return True

    async def _of_upload(self, operation: Callable[..., Any], key: str, upload: str, **request: Any) -> Any:
        try:
            return await aws.call(operation, Bucket=self._bucket, Key=key, UploadId=upload, **request)
        except ClientError as error:
            if aws.error_code(error) in _LOST:
                raise UploadLost(key) from error
            raise
