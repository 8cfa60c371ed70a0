"""The sample batch of the sample site: targets of every kind, and what must come of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sift_client.shapes import Slot, Target


@dataclass(frozen=True)
class Sample:
    """One target and its expected end: `error` is a code, None for done; `holds` and `lacks` are about content."""

    path: str
    options: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    holds: str = ""
    lacks: str = ""


_ADVERT = "Rubber boots"

SAMPLES = (
    Sample("/articles/tide-tables.html", {"mode": "article"}, holds="Thirty-seven wheels", lacks=_ADVERT),
    Sample("/articles/lighthouse-keepers.html", holds="Wake the next keeper", lacks=_ADVERT),
    Sample("/docs/ledger-queue.html", {"mode": "page"}, holds="SKIP LOCKED"),
    Sample("/articles/river-gauges.html", {"mode": "text"}, holds="A nail in the bridge"),
    Sample("/moved", {"mode": "article"}, holds="Thirty-seven wheels"),
    Sample("/reports/annual-report.pdf", {"pages": "1-2,-1"}, holds="What comes next", lacks="Measuring the flow"),
    Sample("/reports/leaflet.pdf", holds="Keep boots"),
    Sample("/api/stations.json", holds="Sankt Vitus"),
    Sample("/data/tides.csv", holds="| Skarvholm | 2026-04-01 | low |"),
    Sample("/feed.xml", {"mode": "raw"}, holds="<rss"),
    Sample("/slow", {"mode": "article"}, holds="forty-one log books"),
    Sample("/busy?id={visit}", {"mode": "article"}, holds="A nail in the bridge"),
    Sample("/no-such-page.html", error="http_error"),
    Sample("/de/hochwasser.html", holds="Größere Städte flussabwärts"),
    Sample("/ru/ledokol.html", holds="Стояли на льду"),
    Sample("/ja/minato.html", holds="値段は声で決まる"),
    Sample("/zh/duchuan.html", holds="船工王喆"),
    Sample("/ar/manara.html", holds="مصباح من السوق"),
    Sample("/misc/brume.html", {"mode": "text"}, holds="œuvres d'artistes l'été"),
    Sample("/forum/thread.html", {"mode": "page"}, holds="angle first, patience second"),
    Sample("/gzip/articles/tide-tables.html", {"mode": "raw"}, holds="<!DOCTYPE html>"),
)


def make_targets(site_url: str, visit: str) -> list[Target]:
    """The targets at a running site. `visit` sets this batch's counter of busy answers apart from others'."""
    return [Target(url=site_url + sample.path.format(visit=visit), options=sample.options) for sample in SAMPLES]


def find_surprises(slots: dict[int, Slot], contents: dict[int, str]) -> list[str]:
    """What did not end as it must, one sentence each; `contents` holds the text of the done targets by index."""
    surprises = []
    for index, sample in enumerate(SAMPLES):
        found = _find_surprise(sample, slots.get(index), contents.get(index))
        if found:
            surprises.append(f"{index:04d} {sample.path}: {found}")
    return surprises


def _find_surprise(sample: Sample, slot: Slot | None, content: str | None) -> str | None:
    if slot is None:
        return "no slot"
    wanted = ("failed", sample.error) if sample.error else ("done", None)
    came = (slot["status"], (slot.get("error") or {}).get("code"))
    if came != wanted:
        return f"expected {_name(wanted)}, got {_name(came)}"
    if sample.error is None:
        if content is None:
            return "the content was not saved"
        if sample.holds not in content:
            return f"the content lacks {sample.holds!r}"
        if sample.lacks and sample.lacks in content:
            return f"the content still holds {sample.lacks!r}"
    return None


def _name(end: tuple[str, str | None]) -> str:
    return f"{end[0]} ({end[1]})" if end[1] else end[0]
