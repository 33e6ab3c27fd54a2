"""How envd's messages are read here: JSON as the SDK writes it, and nothing that its native parser cannot bear."""

from __future__ import annotations

import json
from typing import TypeVar

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from e2b.envd.client_shared import ENVD_JSON_CODEC
from protobuf import Message

_M = TypeVar("_M", bound=Message)
_FEW = 200


class RequestCodec:
    """The SDK's lenient codec, since a newer SDK may send fields that this one does not know; what cannot be read is `invalid_argument`.

    The parser behind it recurses without a bound in some places: 30,000 brackets end the whole process. Python's own has one.
    """

    def name(self) -> str:
        return ENVD_JSON_CODEC.name()

    def encode(self, message: Message) -> bytes:
        return ENVD_JSON_CODEC.encode(message)

    def decode(self, data: bytes | bytearray, message_class: type[_M]) -> _M:
        """Raises ConnectError, whatever the bytes are."""
        try:
            if data.count(b"[") + data.count(b"{") > _FEW:
                json.loads(data)
            return ENVD_JSON_CODEC.decode(data, message_class)
        except (ConnectError, ValueError, RecursionError) as error:
            name = message_class.__name__
            raise ConnectError(Code.INVALID_ARGUMENT, f"the request is no {name} ({str(error)[-200:]})") from None
