"""The conditional writes of a job, as pure functions that build DynamoDB requests.

Each is one UpdateItem of the job's STATE item, one write unit while that item is within 1 KB.
`TableName` is added by the adapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sift import ids
from sift.jobs import ACTIVE, COUNTING, ENDED, LIVE, Flight, State, Status
from sift.store import codec, keys

if TYPE_CHECKING:
    from sift.webhooks import Delivery, Secrets

Request = dict[str, Any]

#: Attribute names that are reserved words of DynamoDB's expressions, or might become so.
_NAMES = {"#s": "status", "#v": "v", "#total": "total"}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition and the values that it names."""

    text: str
    values: Mapping[str, Any]


def _any_status(statuses: Iterable[Status]) -> Condition:
    values = {f":is_{status}": status for status in sorted(statuses)}
    return Condition(f"#s IN ({', '.join(values)})", values)


IS_ACTIVE = _any_status(ACTIVE)
IS_LIVE = _any_status(LIVE)
IS_COUNTING = _any_status(COUNTING)


def key(pair: tuple[str, str]) -> dict[str, Any]:
    return codec.to_wire({"pk": pair[0], "sk": pair[1]})


def put(pair: tuple[str, str], item: Mapping[str, Any]) -> Request:
    """A put of the whole item."""
    return {"Item": codec.to_wire({"pk": pair[0], "sk": pair[1], **item})}


def _state_update(
    job_id: str,
    update: str,
    conditions: Iterable[Condition],
    values: Mapping[str, Any],
    names: Mapping[str, str] | None = None,
) -> Request:
    every = [Condition("#v = :v", {":v": codec.VERSION}), *conditions]
    bound = dict(values)
    for condition in every:
        bound.update(condition.values)
    text = " AND ".join(condition.text for condition in every)
    used = {name: attribute for name, attribute in _NAMES.items() if name in f"{update} {text}"}
    return {
        "Key": key(keys.state(job_id)),
        "UpdateExpression": update,
        "ConditionExpression": text,
        "ExpressionAttributeNames": {**used, **(names or {})},
        "ExpressionAttributeValues": codec.to_wire(bound),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _offset(job_id: str, moment: int) -> int:
    return moment - ids.created_ms(job_id)


def _lease_is_mine(job_id: str, lease: int) -> Condition:
    return Condition("flight.#i.l = :mine", {":mine": _offset(job_id, lease)})


def claim(job_id: str, index: int, lease: int, now_ms: int) -> Request:
    now = _offset(job_id, now_ms)
    nobody_holds_it = Condition("flight.#i.l <= :now", {":now": now})
    return _state_update(
        job_id,
        "SET flight.#i.l = :lease, flight.#i.n = flight.#i.n + :one, #s = :running, "
        "started = if_not_exists(started, :now)",
        [IS_ACTIVE, nobody_holds_it],
        {":lease": _offset(job_id, lease), ":one": 1, ":running": "running"},
        {"#i": str(index)},
    )


def finish(job_id: str, index: int, lease: int, counter: str, size: int) -> Request:
    return _state_update(
        job_id,
        "REMOVE flight.#i ADD #counter :one, #bytes :size",
        [IS_COUNTING, _lease_is_mine(job_id, lease)],
        {":one": 1, ":size": size},
        {"#i": str(index), "#counter": counter, "#bytes": "bytes"},
    )


def hand_back(job_id: str, index: int, lease: int, until: int, busy_since: int | None) -> Request:
    update = "SET flight.#i.l = :until, "
    values = {":until": _offset(job_id, until)}
    if busy_since is None:
        update += "flight.#i.n = flight.#i.n - :one"
        values[":one"] = 1
    else:
        update += "flight.#i.n = :none, flight.#i.b = if_not_exists(flight.#i.b, :busy)"
        values |= {":none": 0, ":busy": _offset(job_id, busy_since)}
    return _state_update(job_id, update, [_lease_is_mine(job_id, lease)], values, {"#i": str(index)})


def abandon(job_id: str, index: int, lease: int, until: int) -> Request:
    values = {":until": _offset(job_id, until)}
    return _state_update(
        job_id, "SET flight.#i.l = :until", [_lease_is_mine(job_id, lease)], values, {"#i": str(index)}
    )


def release(job_id: str, first: int, count: int, until: int) -> Request:
    nobody_released = Condition("released = :first", {":first": first})
    names = {f"#i{index}": str(index) for index in range(first, first + count)}
    entries = "".join(f", flight.{name} = :quiet" for name in names)
    values = {":next": first + count, ":quiet": codec.flight_value(job_id, Flight(until))}
    return _state_update(job_id, "SET released = :next" + entries, [IS_ACTIVE, nobody_released], values, names)


def touch(job_id: str, entries: Mapping[int, Flight], until: int) -> Request:
    names = {f"#i{index}": str(index) for index in entries}
    unchanged = [
        Condition(f"flight.#i{index}.l = :was{index}", {f":was{index}": _offset(job_id, entry.until)})
        for index, entry in entries.items()
    ]
    update = "SET " + ", ".join(f"flight.{name}.l = :until" for name in names)
    return _state_update(job_id, update, [IS_ACTIVE, *unchanged], {":until": _offset(job_id, until)}, names)


def pause(job_id: str, status: Status, now_ms: int) -> Request:
    source = _any_status({"running" if status == "pausing" else "queued"})
    values = {":to": status, ":at": _offset(job_id, now_ms)}
    return _state_update(job_id, "SET #s = :to, pausing = :at", [source], values)


def end_pause(job_id: str, pausing_at: int) -> Request:
    same_pause = Condition("pausing = :at", {":at": _offset(job_id, pausing_at)})
    return _state_update(job_id, "SET #s = :paused", [_any_status({"pausing"}), same_pause], {":paused": "paused"})


def resume(job_id: str) -> Request:
    return _state_update(job_id, "SET #s = :queued REMOVE pausing", [_any_status({"paused"})], {":queued": "queued"})


def cancel(job_id: str) -> Request:
    return _state_update(job_id, "SET #s = :cancelling", [IS_LIVE], {":cancelling": "cancelling"})


def settle(seen: State, status: Status, error: str | None, now_ms: int, expires_at: int | None) -> Request:
    """The state's part of the settle transaction: on condition of what the status was computed from."""
    job_id = seen.job_id
    if status == "cancelled":
        conditions = [IS_LIVE]
    else:
        unchanged = Condition("#s = :seen AND done = :done", {":seen": seen.status, ":done": seen.done})
        conditions = [unchanged]
        if error is None:
            nothing_left = Condition("released = #total AND size(flight) = :none", {":none": 0})
            conditions.append(nothing_left)
    update = "SET #s = :to, ended = :at"
    values: dict[str, Any] = {":to": status, ":at": _offset(job_id, now_ms)}
    names = {}
    if error is not None:
        update += ", #error = :error"
        values[":error"] = error
        names["#error"] = "error"
    if expires_at is None:
        update += " REMOVE expires_at"
    else:
        update += ", expires_at = :expires"
        values[":expires"] = expires_at
    return _state_update(job_id, update, conditions, values, names)


def hide(job_id: str, now_ms: int) -> Request:
    """The state's part of the removal: an ended job expires now."""
    return _state_update(job_id, "SET expires_at = :expires", [_any_status(ENDED)], {":expires": now_ms // 1000})


def note_delivery(pair: tuple[str, str], delivery: Delivery, expires_at: int | None) -> Request:
    """How the posts of a job go; that one was given up stays."""
    return {
        **put(pair, codec.delivery_item(delivery, expires_at)),
        "ConditionExpression": "attribute_not_exists(pk) OR #state <> :given_up",
        "ExpressionAttributeNames": {"#state": "state"},
        "ExpressionAttributeValues": codec.to_wire({":given_up": "failed"}),
    }


def put_secrets(pair: tuple[str, str], secrets: Secrets, seen: Secrets | None) -> Request:
    """A caller's secrets in place of the ones that were read."""
    request = put(pair, codec.secrets_item(secrets))
    if seen is None:
        return {**request, "ConditionExpression": "attribute_not_exists(pk)"}
    return {
        **request,
        "ConditionExpression": "#current = :seen",
        "ExpressionAttributeNames": {"#current": "current"},
        "ExpressionAttributeValues": codec.to_wire({":seen": seen.current}),
    }


def keep_listed(pair: tuple[str, str], expires_at: int | None) -> Request:
    """The entry in the caller's list is kept as long as the job itself."""
    if expires_at is None:
        return {"Key": key(pair), "UpdateExpression": "REMOVE expires_at"}
    values = codec.to_wire({":expires": expires_at})
    return {"Key": key(pair), "UpdateExpression": "SET expires_at = :expires", "ExpressionAttributeValues": values}


def add_id(pair: tuple[str, str], job_id: str, cap: int | None = None) -> Request:
    """Add a job to a set of ids; with a cap, when fewer are in it. Adding twice changes nothing."""
    request: Request = {
        "Key": key(pair),
        "UpdateExpression": "SET #v = :v ADD ids :id",
        "ExpressionAttributeNames": {"#v": "v"},
        "ExpressionAttributeValues": codec.to_wire({":id": {job_id}, ":v": codec.VERSION}),
    }
    if cap is not None:
        none_yet = "attribute_not_exists(ids)" if cap > 0 else "attribute_exists(ids)"
        both = " OR " if cap > 0 else " AND "
        request["ConditionExpression"] = none_yet + both + "size(ids) < :cap"
        request["ExpressionAttributeValues"] |= codec.to_wire({":cap": cap})
    return request


def remove_id(pair: tuple[str, str], job_id: str) -> Request:
    """Take a job out of a set of ids. Removing twice changes nothing."""
    return {
        "Key": key(pair),
        "UpdateExpression": "SET #v = :v DELETE ids :id",
        "ExpressionAttributeNames": {"#v": "v"},
        "ExpressionAttributeValues": codec.to_wire({":id": {job_id}, ":v": codec.VERSION}),
    }


def revoke_key(pair: tuple[str, str], at: int) -> Request:
    """Mark an API key as revoked; the first time stays."""
    return {
        "Key": key(pair),
        "UpdateExpression": "SET revoked_at = if_not_exists(revoked_at, :at)",
        "ConditionExpression": "#v = :v AND attribute_exists(secret_sha256)",
        "ExpressionAttributeNames": {"#v": "v"},
        "ExpressionAttributeValues": codec.to_wire({":at": at, ":v": codec.VERSION}),
        "ReturnValues": "ALL_NEW",
    }
