"""Items of the table from and to the records of the domain.

The times of a state are kept as milliseconds since the job was made (its id tells when) under short names, so that
a full window stays within one write unit of 1 KB. An item of an unknown version is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from sift import ids
from sift.errors import DataUnreadable
from sift.identity import DEFAULT_CLASS, Identity, KeyRecord
from sift.jobs import Flight, Meta, State
from sift.packing import pack, unpack
from sift.specs import pack_specs, unpack_specs
from sift.store.ports import Idempotency, Outcome, Segment

# What is rare is loaded with the first item of its kind: a cold start would pay for all of it.
if TYPE_CHECKING:
    from sift.assembly import Assembly
    from sift.pacing import Pace
    from sift.webhooks import Delivery, Secrets

VERSION = 1

Item = dict[str, Any]

_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


def to_wire(values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values as DynamoDB's typed values; None is left out."""
    return {name: _serialize(value) for name, value in values.items() if value is not None}


def from_wire(item: Mapping[str, Any]) -> Item:
    """A stored item as plain values; an unknown version raises DataUnreadable."""
    values = {name: _deserialize(value) for name, value in item.items()}
    if values.get("v") != VERSION:
        raise DataUnreadable(f"The item {values.get('pk')} has version {values.get('v')!r}.")
    return values


def raw(data: Any) -> bytes:
    """The bytes of a binary attribute."""
    return bytes(data)


def _integer(item: Item, name: str) -> int | None:
    return None if item.get(name) is None else int(item[name])


def flight_value(job_id: str, entry: Flight) -> dict[str, int]:
    """One entry of the flight map as stored."""
    start = ids.created_ms(job_id)
    value = {"l": entry.until - start, "n": entry.claims}
    if entry.busy_since is not None:
        value["b"] = entry.busy_since - start
    return value


def _flight_from(job_id: str, values: Mapping[str, Any]) -> dict[int, Flight]:
    start = ids.created_ms(job_id)
    found = {}
    for index, entry in sorted(values.items(), key=lambda pair: int(pair[0])):
        busy_since = None if entry.get("b") is None else int(entry["b"]) + start
        found[int(index)] = Flight(int(entry["l"]) + start, int(entry["n"]), busy_since)
    return found


def state_item(state: State) -> Item:
    start = ids.created_ms(state.job_id)
    return {
        "v": VERSION,
        "status": state.status,
        "total": state.total,
        "released": state.released,
        "done": state.done,
        "failed": state.failed,
        "bytes": state.bytes,
        "window": state.window,
        "budget": state.budget,
        "flight": {str(index): flight_value(state.job_id, entry) for index, entry in state.flight.items()},
        "started": None if state.started_at is None else state.started_at - start,
        "ended": None if state.ended_at is None else state.ended_at - start,
        "pausing": None if state.pausing_at is None else state.pausing_at - start,
        "deadline": state.deadline_at - start,
        "expires_at": state.expires_at,
        "error": state.error,
        "n": state.notify or None,
    }


def state_from(item: Item) -> State:
    job_id = item["pk"].removeprefix("JOB#")
    start = ids.created_ms(job_id)

    def moment(values: Mapping[str, Any], name: str) -> int | None:
        return None if values.get(name) is None else int(values[name]) + start

    return State(
        job_id=job_id,
        status=item["status"],
        total=int(item["total"]),
        released=int(item["released"]),
        done=int(item["done"]),
        failed=int(item["failed"]),
        bytes=int(item["bytes"]),
        window=int(item["window"]),
        budget=int(item["budget"]),
        flight=_flight_from(job_id, item["flight"]),
        started_at=moment(item, "started"),
        ended_at=moment(item, "ended"),
        pausing_at=moment(item, "pausing"),
        deadline_at=int(item["deadline"]) + start,
        expires_at=_integer(item, "expires_at"),
        error=item.get("error"),
        notify=int(item.get("n", 0)),
    )


def meta_item(meta: Meta) -> Item:
    return {
        "v": VERSION,
        "kind": meta.kind,
        "caller": meta.caller,
        "identity": dict(meta.identity),
        "total": meta.total,
        "created_at": meta.created_at,
        "deadline_at": meta.deadline_at,
        "ttl_seconds": meta.ttl_seconds,
        "expires_at": meta.expires_at,
        "shard": meta.shard,
        "salt": meta.salt,
        "options": dict(meta.options),
        "metadata": dict(meta.metadata),
        "idempotency": meta.idempotency,
        "explicit_key": meta.explicit_key,
        "retry_of": meta.retry_of,
        "webhook": None if meta.webhook is None else dict(meta.webhook),
    }


def meta_from(item: Item) -> Meta:
    return Meta(
        job_id=item["pk"].removeprefix("JOB#"),
        kind=item["kind"],
        caller=item["caller"],
        identity=item["identity"],
        total=int(item["total"]),
        created_at=int(item["created_at"]),
        deadline_at=int(item["deadline_at"]),
        ttl_seconds=int(item["ttl_seconds"]),
        expires_at=_integer(item, "expires_at"),
        shard=int(item["shard"]),
        salt=item["salt"],
        options=item["options"],
        metadata=item["metadata"],
        idempotency=item.get("idempotency"),
        explicit_key=item["explicit_key"],
        retry_of=item.get("retry_of"),
        webhook=item.get("webhook"),
    )


def idempotency_item(record: Idempotency) -> Item:
    return {"v": VERSION, "job_id": record.job_id, "work": record.work, "expires_at": record.expires_at}


def idempotency_from(item: Item) -> Idempotency:
    key = item["pk"].removeprefix("IDEM#")
    return Idempotency(key, item["job_id"], item["work"], _integer(item, "expires_at"))


def segment_item(segment: Segment, expires_at: int | None) -> Item:
    data = None if segment.blob else pack_specs(segment.specs)
    return {"v": VERSION, "specs": data, "blob": segment.blob, "expires_at": expires_at}


def segment_from(item: Item) -> Segment:
    number = int(item["pk"].rsplit("#", 1)[1])
    if item.get("blob"):
        return Segment(number, blob=item["blob"])
    return Segment(number, unpack_specs(raw(item["specs"])))


def outcome_item(outcome: Outcome, expires_at: int | None) -> Item:
    return {
        "v": VERSION,
        "lease": outcome.lease,
        "status": outcome.status,
        "size": outcome.size,
        "document": pack(outcome.document),
        "content": None if outcome.content is None else zlib.compress(outcome.content, 6),
        "blob": outcome.blob,
        "expires_at": expires_at,
    }


#: What a query is told to leave the contents of outcomes out: they cost the same read units, and most of the bytes.
OUTCOME_WITHOUT_CONTENT: Mapping[str, Any] = {
    "ProjectionExpression": "pk, sk, v, lease, #status, #size, #document, #blob",
    "ExpressionAttributeNames": {
        "#status": "status", "#size": "size", "#document": "document", "#blob": "blob",
    },
}  # fmt: skip


def outcome_from(item: Item) -> Outcome:
    return Outcome(
        index=int(item["sk"].removeprefix("T#")),
        lease=int(item["lease"]),
        status=item["status"],
        size=int(item["size"]),
        document=unpack(raw(item["document"])),
        content=None if item.get("content") is None else zlib.decompress(raw(item["content"])),
        blob=item.get("blob"),
    )


def assembly_item(assembly: Assembly) -> Item:
    return {
        "v": VERSION,
        "attempt": assembly.attempt,
        "flight": {str(index): flight_value(assembly.job_id, entry) for index, entry in assembly.flight.items()},
        "touched_at": assembly.touched_at,
        "next_index": assembly.next_index,
        "parts": list(assembly.parts),
        "upload": assembly.upload,
        "size": assembly.size,
        "done": assembly.done,
        "restarts": assembly.restarts,
        "revision": assembly.revision,
        "expires_at": assembly.expires_at,
    }


def assembly_from(item: Item) -> Assembly:
    from sift.assembly import Assembly

    job_id = item["pk"].removeprefix("RESULTS#")
    return Assembly(
        job_id,
        item["attempt"],
        _flight_from(job_id, item["flight"]),
        touched_at=int(item["touched_at"]),
        expires_at=_integer(item, "expires_at"),
        next_index=int(item["next_index"]),
        parts=tuple(item["parts"]),
        upload=item.get("upload"),
        size=int(item["size"]),
        done=item["done"],
        restarts=int(item["restarts"]),
        revision=int(item["revision"]),
    )


def key_item(record: KeyRecord) -> Item:
    identity = record.identity
    models = identity.allowed_models
    return {
        "v": VERSION,
        "secret_sha256": record.secret_sha256,
        "tenant": identity.tenant,
        "actor": identity.actor,
        "subject": identity.subject,
        "application": identity.application,
        "scopes": list(identity.scopes),
        "limits": dict(identity.limits),
        "allowed_models": None if models is None else list(models),
        "denied_models": list(identity.denied_models),
        "caller_class": identity.caller_class,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
        "events": record.events or None,
    }


def key_from(item: Item) -> KeyRecord:
    """Keys of earlier releases have no class, models, subject, application and time of creation."""
    key_id = item["pk"].removeprefix("KEY#")
    models = item.get("allowed_models")
    identity = Identity(
        tenant=item["tenant"],
        actor=item["actor"],
        key_id=key_id,
        scopes=tuple(item["scopes"]),
        limits={name: int(value) for name, value in item["limits"].items()},
        subject=item.get("subject"),
        application=item.get("application"),
        allowed_models=None if models is None else tuple(models),
        denied_models=tuple(item.get("denied_models", ())),
        caller_class=item.get("caller_class", DEFAULT_CLASS),
    )
    return KeyRecord(
        key_id,
        item["secret_sha256"],
        identity,
        expires_at=_integer(item, "expires_at"),
        created_at=_integer(item, "created_at"),
        revoked_at=_integer(item, "revoked_at"),
        events=item.get("events", False),
    )


def pace_from(item: Item) -> Pace:
    """A host of which only a Retry-After is known has no tickets yet."""
    from sift.pacing import Pace

    return Pace(
        next_at=int(item.get("next_at", 0)),
        issued=int(item.get("issued", 0)),
        after=int(item.get("after", 0)),
        holds={int(lane): int(until) for lane, until in item.get("holds", {}).items()},
        spacing=int(item.get("spacing", 0)),
    )


def delivery_item(delivery: Delivery, expires_at: int | None) -> Item:
    return {
        "v": VERSION,
        "state": delivery.state,
        "status": delivery.status,
        "error": delivery.error,
        "expires_at": expires_at,
    }


def delivery_from(item: Item) -> Delivery:
    from sift.webhooks import Delivery

    return Delivery(item["state"], _integer(item, "status"), item.get("error"))


def secrets_item(secrets: Secrets) -> Item:
    return {
        "v": VERSION,
        "current": secrets.current,
        "previous": secrets.previous,
        "previous_until": secrets.previous_until,
    }


def secrets_from(item: Item) -> Secrets:
    from sift.webhooks import Secrets

    return Secrets(item["current"], item.get("previous"), int(item["previous_until"]))
