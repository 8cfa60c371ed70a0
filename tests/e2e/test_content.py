"""Every kind of content that a job can have, read in every way that there is."""

from __future__ import annotations

import json

from sift_client.samples import SAMPLES, find_surprises, make_targets
from tests.e2e.service import Service, content_of

#: Over the 4,000,000 bytes that an answer's JSON may hold of one content.
LARGE_KB = 4500

#: Path, options, media type, and a text that must be in the content.
KINDS = [
    ("/articles/tide-tables.html", {"mode": "meta"}, "application/json", '"title"'),
    ("/articles/tide-tables.html", {"mode": "links"}, "application/x-ndjson", '"url":'),
    ("/articles/tide-tables.html", {"grep": "(?i)wheels", "context": 1}, "text/plain", "Thirty-seven wheels"),
    ("/articles/tide-tables.html", {"question": "How many wheels?"}, "text/markdown", "Thirty-seven wheels"),
    ("/articles/tide-tables.html", {"mode": "raw"}, "text/html", "<!DOCTYPE html>"),
    ("/api/stations.json", {"jq": ".data[].name"}, "application/x-ndjson", '"Sankt Vitus"'),
    ("/data/tides.csv", {"mode": "text"}, "text/plain", "Norrhavn,2026-04-01,high"),
    ("/reports/leaflet.pdf", {"mode": "text"}, "text/plain", "Keep boots"),
    ("/reports/leaflet.pdf", {"mode": "raw"}, "application/pdf", "%PDF-"),
    ("/feed.xml", {}, "text/markdown", "# "),
    ("/notes/changelog.txt", {}, "text/plain", "\n"),
]

#: Path, options and the code that a target must end with.
FAILURES = [
    ("/no-such-page.html", {}, "http_error"),
    ("/error", {}, "http_error"),
    ("/moved/round", {}, "too_many_redirects"),
    ("/articles/tide-tables.html", {"pages": "1"}, "bad_pages"),
    ("/articles/tide-tables.html", {"grep": "no line says so"}, "no_match"),
    ("/articles/tide-tables.html", {"jq": "."}, "bad_jq"),
    ("/reports/leaflet.pdf", {"pages": "900"}, "bad_pages"),
    ("/api/stations.json", {"mode": "links"}, "unsupported_media"),
]


def test_the_sample_batch_ends_as_it_must(service: Service, site: str, visit: str) -> None:
    job = service.submit(make_targets(site, visit)).expect(202).json
    assert (job["counts"]["total"], job["reused"]) == (len(SAMPLES), False)
    ended = service.wait(job["id"])
    assert ended["status"] == "partial", "one page of the batch is a 404"
    assert (ended["counts"]["done"], ended["counts"]["failed"]) == (len(SAMPLES) - 1, 1)
    slots = {slot["index"]: slot for slot in service.slots(job["id"], content="true", limit=8)}
    assert list(slots) == list(range(len(SAMPLES)))
    contents = {index: content_of(slot).decode() for index, slot in slots.items() if slot["status"] == "done"}
    assert find_surprises(slots, contents) == []
    failed = [slot["index"] for slot in service.slots(job["id"], status="failed")]
    assert failed == [index for index, sample in enumerate(SAMPLES) if sample.error]


def test_every_kind_of_content(service: Service, site: str, visit: str) -> None:
    targets = [{"url": f"{site}{path}?{visit}", "options": options} for path, options, _, _ in KINDS]
    slots = service.run(targets)
    for slot, (path, options, media_type, holds) in zip(slots, KINDS, strict=True):
        content = content_of(slot)
        assert slot["media_type"].split(";")[0] == media_type, (path, options)
        assert holds.encode() in content, (path, options, content[:500])
        assert slot["bytes"] == len(content)
        stored = service.call(
            "GET /v1/jobs/{id}/targets/{index}/content", id=service.made[0], index=slot["index"]
        ).expect(200)
        assert (stored.raw, stored.headers["content-type"]) == (content, slot["media_type"])


def test_every_target_that_fails_says_why(service: Service, site: str, visit: str) -> None:
    targets = [{"url": f"{site}{path}?{visit}", "options": options} for path, options, _ in FAILURES]
    slots = service.run([*targets, "http://169.254.169.254/latest/meta-data/", "http://[::1]/"])
    codes = [slot["error"]["code"] for slot in slots]
    assert codes == [*(code for _, _, code in FAILURES), "blocked_address", "blocked_address"]
    for slot in slots:
        assert slot["status"] == "failed"
        assert slot["error"]["detail"]
        assert slot["error"]["hint"]
    assert [slots[0]["error"]["status"], slots[1]["error"]["status"]] == [404, 500]


def test_a_large_content_is_read_by_a_link_and_in_parts(service: Service, site: str, visit: str) -> None:
    (slot,) = service.run([f"{site}/big.txt?kb={LARGE_KB}&{visit}"])
    assert slot["status"] == "done"
    assert "content" not in slot
    job_id = service.made[0]
    place = {"id": job_id, "index": 0}
    assert slot["content_url"].endswith(f"/v1/jobs/{job_id}/targets/0/content")
    link = service.call("GET /v1/jobs/{id}/targets/{index}/content", **place).expect(303)
    whole = service.follow(link.headers["location"]).expect(200)
    assert len(whole.raw) == slot["bytes"] > LARGE_KB * 1024 - 1
    text = whole.text
    first = service.call("GET /v1/jobs/{id}/targets/{index}/content", query={"max_chars": 1000}, **place).expect(200)
    assert (first.text, first.headers["sift-chars"]) == (text[:1000], str(len(text)))
    assert first.headers["sift-next-offset"] == "1000"
    last = service.call(
        "GET /v1/jobs/{id}/targets/{index}", query={"offset": len(text) - 500, "max_chars": 1000}, **place
    ).expect(200)
    assert (last.json["content"], last.json["next_offset"]) == (text[-500:], None)


def test_one_page_now(service: Service, site: str) -> None:
    answer = service.call("POST /v1/fetch", body={"url": f"{site}/articles/tide-tables.html"}).expect(200)
    assert "Thirty-seven wheels" in answer.json["content"]
    assert answer.json["meta"]["status"] == 200
    missing = service.call("POST /v1/fetch", body={"url": f"{site}/no-such-page.html"})
    assert (missing.status, missing.code, missing.json["target_status"]) == (502, "http_error", 404)
    private = service.call("POST /v1/fetch", body={"url": "http://169.254.169.254/"})
    assert (private.status, private.code) == (422, "blocked_address")


def test_a_page_that_has_not_changed_is_not_sent_again(service: Service, site: str) -> None:
    address = f"{site}/articles/tide-tables.html"
    first = service.call("POST /v1/fetch", body={"url": address}).expect(200).json
    options = {"headers": {"If-None-Match": first["meta"]["etag"]}}
    again = service.call("POST /v1/fetch", body={"url": address, "options": options}).expect(200).json
    assert (again["content"], again["meta"]["not_modified"]) == ("", True)


def test_meta_is_json(service: Service, site: str, visit: str) -> None:
    (slot,) = service.run([{"url": f"{site}/articles/tide-tables.html?{visit}", "options": {"mode": "meta"}}])
    assert json.loads(content_of(slot))["title"]
