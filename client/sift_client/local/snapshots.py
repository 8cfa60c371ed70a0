"""What keeps a call to moto's DynamoDB from costing more the more its table holds, with the same answers."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table

#: Where an item is or would be: its table, hash key and range key.
Place = tuple[Table, DynamoType, DynamoType | None]


class Snapshot:
    """The items at some places as they are now, and how far the streams of their tables have got."""

    def __init__(self, places: Iterable[Place]) -> None:
        # moto changes items in place, so it has to be copies.
        self._items = [(place, copy.deepcopy(_find(place))) for place in places]
        tables = {id(table): table for (table, _, _), _ in self._items}.values()
        self._streams = [(table.stream_shard, len(table.stream_shard.items)) for table in tables if table.stream_shard]

    def restore(self) -> None:
        """Puts all of it back."""
        for place, before in self._items:
            # Past the methods of Table, which would write to its stream.
            holder, key = _holder(place)
            if before is None:
                holder.pop(key, None)
            else:
                holder[key] = before
        for shard, length in self._streams:
            del shard.items[length:]


@contextmanager
def uncopied(tables: Iterable[Table]) -> Iterator[None]:
    """Makes a deep copy of these tables the table itself.

    moto copies the table once for each action of a transaction, to put the copy in its place if the transaction fails.
    Whoever uses this must put the items back instead.
    """
    changed = list(tables)
    for table in changed:
        vars(table)["__deepcopy__"] = lambda memo, table=table: table
    try:
        yield
    finally:
        for table in changed:
            vars(table).pop("__deepcopy__", None)


@contextmanager
def narrowed(table: Table) -> Iterator[None]:
    """Makes a query of this table look at the items of its hash key only, where moto sorts all that there are.

    For queries of an index it is not.
    """
    items: Any = table.items

    def query(hash_key: DynamoType, *rest: Any, **named: Any) -> Any:
        table.items = {hash_key: items[hash_key]} if hash_key in items else {}  # type: ignore[assignment]
        return Table.query(table, hash_key, *rest, **named)

    vars(table)["query"] = query
    try:
        yield
    finally:
        table.items = items
        del vars(table)["query"]


def _holder(place: Place) -> tuple[dict[Any, Any], DynamoType]:
    """The dictionary that holds the item, and its key there."""
    table, hash_key, range_key = place
    items: Any = table.items
    return (items[hash_key], range_key) if range_key else (items, hash_key)


def _find(place: Place) -> Item | None:
    holder, key = _holder(place)
    return holder.get(key)
