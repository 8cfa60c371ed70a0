"""moto's services in one application, without two things that moto does anew for each call."""

from __future__ import annotations

from typing import Any

from moto.core.serialize import SERVICE_SPECIFIC_SERIALIZERS, JSONSerializer
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

#: Values of items that moto holds as they are on the wire, by their type.
PLAIN = {"S": str, "N": str, "BOOL": bool, "NULL": bool, "SS": list}


class Dispatcher(DomainDispatcherApplication):
    """moto looks at its own folder and some hundred patterns to find whose a host is; here once for each host."""

    def __init__(self) -> None:
        super().__init__(create_backend_app)
        self._known: dict[str | None, Any] = {}

    def get_backend_for_host(self, host: str | None) -> Any:
        """The name of the service, as moto calls it."""
        if host not in self._known:
            self._known[host] = super().get_backend_for_host(host)
        return self._known[host]


class ItemSerializer(JSONSerializer):
    """moto looks for ten types under several names each in every value of an item; most values say what they are."""

    def _serialize_type_structure(self, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.name == "AttributeValue" and key and _is_plain(value):
            self._default_serialize(serialized, value, shape, key)
        else:
            super()._serialize_type_structure(serialized, value, shape, key)


def _is_plain(value: Any) -> bool:
    if type(value) is not dict or len(value) != 1:
        return False
    ((kind, held),) = value.items()
    if kind == "M":
        return type(held) is dict and all(map(_is_plain, held.values()))
    if kind == "L":
        return type(held) is list and all(map(_is_plain, held))
    return type(held) is PLAIN.get(kind)


SERVICE_SPECIFIC_SERIALIZERS["dynamodb"] = {"json": ItemSerializer}
