"""Targets over HTTP: slots, pages of any content, and the contents themselves."""

from __future__ import annotations

import asyncio
import base64
import random
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from sift.jobs import counts
from sift.targets import Content
from tests.integration.api.stage import LAMBDA_BYTES, NOT_THERE, Reply, Stage

URL = "https://example.com/"
PAGE_BYTES = 5_000_000


def pages(stage: Stage, job_id: str, **query: Any) -> Iterator[Reply]:
    """All pages of a job; each passes Lambda and is under 5 MB of JSON."""
    cursor: dict[str, str] = {}
    while True:
        reply = stage.get(f"/v1/jobs/{job_id}/targets", **query, **cursor)
        assert reply.status == 200, reply.raw[:500]
        assert reply.size < LAMBDA_BYTES
        assert len(reply.raw) < PAGE_BYTES + 10_000
        yield reply
        if reply.json["next"] is None:
            return
        cursor = {"cursor": reply.json["next"]}


def slots(stage: Stage, job_id: str, **query: Any) -> list[dict[str, Any]]:
    return [slot for page in pages(stage, job_id, **query) for slot in page.json["targets"]]


def finished(stage: Stage, contents: list[Content | Exception], **values: Any) -> str:
    urls = [f"{URL}{number}" for number in range(len(contents))]
    job_id = stage.submit(*urls, **values)
    stage.work(dict(zip(urls, contents, strict=True)))
    return job_id


def text(value: str, media_type: str = "text/markdown; charset=utf-8") -> Content:
    return Content(value.encode(), media_type, {"status": 200, "chars": len(value), "title": "A page"})


def test_slots_while_a_job_runs(stage: Stage) -> None:
    job_id = stage.submit(*(f"{URL}{n}" for n in range(4)), window=2)
    stage.work({f"{URL}0": NOT_THERE}, most=1)
    state = stage.state(job_id)
    (out,) = [index for index in state.flight if index < 2]
    done = 1 - out
    found = slots(stage, job_id)
    assert [slot["index"] for slot in found] == [0, 1, 2, 3]
    assert [slot["url"] for slot in found] == [f"{URL}{n}" for n in range(4)]
    assert found[done]["status"] == ("failed" if done == 0 else "done")
    assert all(found[index]["status"] == "pending" for index in (out, 2, 3))
    assert found[3] == {
        "index": 3, "id": None, "url": f"{URL}3", "status": "pending", "attempts": 0, "media_type": None, "bytes": None,
        "chars": None, "error": None, "meta": None, "finished_at": None,
    }  # fmt: skip


def test_slots_of_an_ended_job(stage: Stage) -> None:
    reply = stage.request("POST", "/v1/jobs", {"targets": [{"url": URL, "id": "mine"}, {"url": f"{URL}404"}]})
    job_id = reply.json["id"]
    stage.work({URL: text("Grüße"), f"{URL}404": NOT_THERE})
    done, failed = slots(stage, job_id)
    assert {name: done[name] for name in ("id", "status", "attempts", "media_type", "bytes", "chars", "error")} == {
        "id": "mine",
        "status": "done",
        "attempts": 1,
        "media_type": "text/markdown; charset=utf-8",
        "bytes": 7,
        "chars": 5,
        "error": None,
    }
    assert done["meta"]["title"] == "A page"
    assert "content" not in done
    assert (failed["status"], failed["bytes"]) == ("failed", None)
    assert failed["error"] == {
        "code": "http_error", "detail": "It answered 404.", "hint": "Check the URL.", "status": 404,
    }  # fmt: skip
    assert slots(stage, job_id, status="failed") == [failed]
    assert slots(stage, job_id, status="done") == [done]
    assert slots(stage, job_id, status="pending") == []
    with_content = slots(stage, job_id, content=True)
    assert with_content == [{**done, "content": "Grüße"}, failed]
    assert stage.get(f"/v1/jobs/{job_id}/targets/0").json == with_content[0]
    assert stage.get(f"/v1/jobs/{job_id}/targets/1").json == failed


def test_pages_of_a_limit(stage: Stage) -> None:
    job_id = finished(stage, [text(str(n)) for n in range(7)])
    found = list(pages(stage, job_id, limit=3))
    assert [[slot["index"] for slot in page.json["targets"]] for page in found] == [[0, 1, 2], [3, 4, 5], [6]]


HEAVY = {
    "ascii": "x" * 900_000,
    "quotes": '"' * 450_000,
    "backslashes": "\\" * 450_000,
    "newlines": "a\n" * 400_000,
    "controls": "\x01" * 120_000,
    "cjk": "日本語のとても長い文章" * 27_000,
    "emoji": "🦀" * 220_000,
}


@pytest.mark.parametrize("kind", HEAVY)
def test_pages_of_heavy_contents_stay_small_and_are_never_cut(stage: Stage, kind: str) -> None:
    contents = [f"{number}{HEAVY[kind]}" for number in range(9)]
    job_id = finished(stage, [text(content) for content in contents])
    found = list(pages(stage, job_id, content=True))
    assert len(found) > 1
    whole = [slot for page in found for slot in page.json["targets"]]
    assert [slot["content"] for slot in whole] == contents
    assert stage.get(f"/v1/jobs/{job_id}/targets/8").json["content"] == contents[8]


def almost_four_megabytes(kind: str) -> str:
    unit = HEAVY[kind][:1_000]
    return unit * (3_999_000 // len(unit.encode()))


@pytest.mark.parametrize("kind", ["quotes", "controls", "cjk", "ascii"])
def test_one_content_of_almost_four_megabytes(stage: Stage, kind: str) -> None:
    content = almost_four_megabytes(kind)
    job_id = finished(stage, [text(content)])
    for reply in (stage.get(f"/v1/jobs/{job_id}/targets/0"), next(pages(stage, job_id, content=True))):
        assert reply.status == 200
        assert reply.size < LAMBDA_BYTES
        slot = reply.json.get("targets", [reply.json])[0]
        if "content" in slot:
            assert slot["content"] == content
        else:
            assert slot["content_url"] == f"/v1/jobs/{job_id}/targets/0/content"


@pytest.mark.parametrize(
    "kind",
    [pytest.param("quotes"), pytest.param("controls"), "cjk", "ascii"],
)
def test_almost_four_megabytes_as_stored(stage: Stage, kind: str) -> None:
    content = almost_four_megabytes(kind)
    job_id = finished(stage, [text(content)])
    whole = stage.get(f"/v1/jobs/{job_id}/targets/0/content")
    assert (whole.status, whole.raw == content.encode()) == (200, True)
    assert whole.size < LAMBDA_BYTES


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (bytes(range(256)) * 100, "application/pdf"),
        ("plain text".encode("utf-16-le"), "text/plain; charset=utf-16le"),
        ("plain text".encode("utf-32-be"), "text/plain"),
    ],
)
def test_what_is_no_utf8_text_is_base64_in_json(stage: Stage, data: bytes, media_type: str) -> None:
    job_id = finished(stage, [Content(data, media_type)])
    for slot in (stage.get(f"/v1/jobs/{job_id}/targets/0").json, *slots(stage, job_id, content=True)):
        assert (slot["encoding"], base64.b64decode(slot["content"])) == ("base64", data)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        pytest.param("Grüße, 世界\r\n".encode(), "text/plain; charset=utf-8", id="utf-8"),
        pytest.param(b"caf\xe9", "text/plain; charset=iso-8859-1", id="latin-1"),
        pytest.param(bytes(range(256)), "application/pdf", id="binary"),
        pytest.param(b"\xff\xfea\x00", "text/html", id="utf-16"),
        pytest.param(b"", "text/plain", id="empty"),
        pytest.param(b'{"a": 1}', "application/json", id="json"),
        pytest.param(b"<script>alert(1)</script>", "text/html; charset=utf-8", id="script"),
    ],
)
def test_the_content_as_stored(stage: Stage, data: bytes, media_type: str) -> None:
    job_id = finished(stage, [Content(data, media_type)])
    reply = stage.get(f"/v1/jobs/{job_id}/targets/0/content")
    assert (reply.status, reply.raw, reply.headers["content-type"]) == (200, data, media_type)
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-security-policy"] == "sandbox"


def test_content_in_the_bucket_is_read_like_any_other(stage: Stage) -> None:
    data = random.Random(7).randbytes(100_000).hex()
    job_id = finished(stage, [text(data)])
    assert stage.get(f"/v1/jobs/{job_id}/targets/0").json["content"] == data
    assert stage.get(f"/v1/jobs/{job_id}/targets/0/content").raw == data.encode()


@pytest.mark.parametrize("byte", [b"0", b"\xff"])
def test_content_over_four_megabytes_is_a_link(stage: Stage, byte: bytes) -> None:
    data = byte * 4_000_001
    job_id = finished(stage, [Content(data, "application/octet-stream"), text("small")])
    path = f"/v1/jobs/{job_id}/targets/0/content"
    for slot in (stage.get(f"/v1/jobs/{job_id}/targets/0").json, slots(stage, job_id, content=True)[0]):
        assert slot["content_url"] == path
        assert not {"content", "encoding"} & set(slot)
    reply = stage.get(path)
    assert (reply.status, reply.raw) == (303, b"")
    assert "X-Amz-Expires=300" in reply.headers["location"]
    with urllib.request.urlopen(reply.headers["location"]) as answer:
        assert answer.read() == data


def test_a_target_without_content(stage: Stage) -> None:
    job_id = finished(stage, [NOT_THERE, text("x")])
    reply = stage.get(f"/v1/jobs/{job_id}/targets/0/content")
    assert (reply.status, reply.code) == (404, "not_found")
    reply = stage.get(f"/v1/jobs/{job_id}/targets/2")
    assert (reply.status, reply.code) == (404, "not_found")


def test_slots_of_a_cancelled_job(stage: Stage) -> None:
    job_id = stage.submit(*(f"{URL}{n}" for n in range(3)), window=1)
    stage.work(most=1)
    stage.request("POST", f"/v1/jobs/{job_id}/cancel")
    done, *never = slots(stage, job_id, content=True)
    assert (done["status"], done["content"]) == ("done", f"{URL}0")
    for slot in never:
        assert (slot["status"], slot["error"]["code"], slot["finished_at"]) == ("cancelled", "cancelled", None)
        assert slot["error"]["hint"]
    assert len(slots(stage, job_id, status="cancelled")) == 2


class LateClock:
    """A clock that is ahead of the machine's."""

    def __init__(self, now: int) -> None:
        self._now = now

    def now_ms(self) -> int:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += round(seconds * 1000)


def test_slots_of_a_job_that_ran_out_of_time(stage: Stage) -> None:
    job_id = stage.submit(*(f"{URL}{n}" for n in range(3)), window=1)
    stage.work(most=1)
    deadline = stage.state(job_id).deadline_at
    asyncio.run(stage.advancer(LateClock(deadline)).advance(job_id))
    job = stage.get(f"/v1/jobs/{job_id}").json
    assert (job["status"], job["error"]["code"]) == ("partial", "deadline")
    assert (job["counts"]["done"], job["counts"]["failed"]) == (1, 2)
    assert job["counts"] == counts(stage.state(job_id), deadline)
    done, *never = slots(stage, job_id)
    assert done["status"] == "done"
    assert [(slot["status"], slot["error"]["code"]) for slot in never] == [("failed", "deadline")] * 2
    assert len(slots(stage, job_id, status="failed")) == 2


def test_a_long_job_over_several_segments(stage: Stage) -> None:
    key = stage.new_key("large", limits={"targets_per_job": 250})
    targets = [{"url": f"{URL}{n}", "id": f"id-{n}"} for n in range(130)]
    job_id = stage.request("POST", "/v1/jobs", {"targets": targets}, key=key).json["id"]
    stage.work(most=10)
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = stage.get(f"/v1/jobs/{job_id}/targets", key=key, limit=55, **cursor).json
        found += page["targets"]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert [(slot["index"], slot["id"]) for slot in found] == [(n, f"id-{n}") for n in range(130)]
    assert sum(slot["status"] == "done" for slot in found) == 10


def in_parts(stage: Stage, path: str, max_chars: int) -> str:
    """A text read to its end by where each part says that it goes on."""
    parts, offset = [], "0"
    while True:
        reply = stage.get(path, offset=offset, max_chars=max_chars)
        assert (reply.status, reply.size < LAMBDA_BYTES) == (200, True), reply.raw[:300]
        parts.append(reply.raw.decode())
        if "sift-next-offset" not in reply.headers:
            assert int(reply.headers["sift-chars"]) == len("".join(parts))
            return "".join(parts)
        assert len(parts[-1]) == max_chars
        offset = reply.headers["sift-next-offset"]


@pytest.mark.parametrize("max_chars", [1, 7, 10, 11])
def test_a_text_in_parts(stage: Stage, max_chars: int) -> None:
    value = "日本🦀 eé\r\nab"
    job_id = finished(stage, [text(value)])
    assert in_parts(stage, f"/v1/jobs/{job_id}/targets/0/content", max_chars) == value


def test_the_ends_of_a_text(stage: Stage) -> None:
    job_id = finished(stage, [text("0123456789"), text("")])
    path = f"/v1/jobs/{job_id}/targets"
    for query, part, following in (
        ({"offset": 0}, "0123456789", None), ({"max_chars": 3}, "012", "3"), ({"offset": 8, "max_chars": 1}, "8", "9"),
        ({"offset": 8, "max_chars": 2}, "89", None), ({"offset": 9, "max_chars": 5}, "9", None),
        ({"offset": 10}, "", None),
    ):  # fmt: skip
        reply = stage.get(f"{path}/0/content", **query)
        assert (reply.status, reply.raw.decode(), reply.headers["sift-chars"]) == (200, part, "10")
        assert reply.headers.get("sift-next-offset") == following
        assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
        slot = stage.get(f"{path}/0", **query).json
        assert (slot["content"], slot["chars"]) == (part, 10)
        assert slot["next_offset"] == (None if following is None else int(following))
    assert stage.get(f"{path}/1/content", offset=0).raw == b""
    assert "next_offset" not in stage.get(f"{path}/0").json
    reply = stage.get(f"{path}/0/content", offset=11)
    assert (reply.status, reply.code, reply.json["chars"]) == (422, "invalid_request", 10)
    assert reply.json["fields"][0]["field"] == "offset"


def test_a_text_over_four_megabytes_in_parts(stage: Stage) -> None:
    value = "".join(f"{number} 日本語\n" for number in range(400_000))
    job_id = finished(stage, [text(value)])
    path = f"/v1/jobs/{job_id}/targets/0"
    assert len(value.encode()) > 4_000_000
    assert in_parts(stage, f"{path}/content", 1_000_000) == value
    slot = stage.get(path, offset=3_000_000, max_chars=20).json
    assert (slot["content"], slot["next_offset"], slot["chars"]) == (value[3_000_000:3_000_020], 3_000_020, len(value))
    assert "content_url" not in slot


@pytest.mark.parametrize("kind", ["emoji", "controls", "quotes"])
def test_the_largest_part_of_a_heavy_text_fits_an_answer(stage: Stage, kind: str) -> None:
    value = HEAVY[kind][:1] * 1_500_000
    job_id = finished(stage, [text(value)])
    path = f"/v1/jobs/{job_id}/targets/0"
    assert in_parts(stage, f"{path}/content", 1_000_000) == value
    for query in ({"max_chars": 1_000_000}, {"offset": 0}):
        reply = stage.get(path, **query)
        assert (reply.status, reply.size < LAMBDA_BYTES) == (200, True)
        assert len(reply.json["content"]) == reply.json["next_offset"] > 100_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("offset", wrong) for wrong in ("-1", "+1", "01", "1.0", "1e3", " 1", "", "1_000", "x", "\uff11", "9" * 30)],
        *[("max_chars", wrong) for wrong in ("0", "-5", "1000001", "00", "10 ", "ten")],
    ],
)
def test_what_is_no_place_in_a_text(stage: Stage, name: str, value: str) -> None:
    job_id = finished(stage, [text("0123456789")])
    for path in ("", "/content"):
        reply = stage.get(f"/v1/jobs/{job_id}/targets/0{path}", **{name: value})
        assert (reply.status, reply.code) == (422, "invalid_request")
        assert reply.json["fields"][0]["field"] == name


def test_only_text_has_parts(stage: Stage) -> None:
    latin = Content(b"caf\xe9", "text/plain; charset=iso-8859-1")
    job_id = finished(stage, [Content(b"%PDF-1.7", "application/pdf"), latin, NOT_THERE])
    for index in (0, 1):
        for path in ("", "/content"):
            reply = stage.get(f"/v1/jobs/{job_id}/targets/{index}{path}", offset=0, max_chars=2)
            assert (reply.status, reply.code) == (422, "invalid_request")
    assert stage.get(f"/v1/jobs/{job_id}/targets/2/content", offset=0).status == 404
    assert stage.get(f"/v1/jobs/{job_id}/targets/2", offset=0).json["status"] == "failed"
