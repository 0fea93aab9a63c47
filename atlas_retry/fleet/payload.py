"""How values travel through the server: as JSON, and none of them large."""

import dataclasses

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    BinaryNullPayloadConverter,
    CompositePayloadConverter,
    DataConverter,
    EncodingPayloadConverter,
)

MAX_BYTES = 64 * 1024


class _Values(EncodingPayloadConverter):
    """Our values as plain JSON, which the server's own web page shows."""

    @property
    def encoding(self) -> str:
        return "json/plain"

    def to_payload(self, value: object) -> Payload:
        content = msgspec.json.encode(value)
        if len(content) > MAX_BYTES:
            raise ValueError(f"{len(content)} bytes are too many for a payload: use the store")
        return Payload(metadata={"encoding": b"json/plain"}, data=content)

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> object:
        return msgspec.json.decode(payload.data, type=type_hint or object)


class _Converter(CompositePayloadConverter):
    def __init__(self) -> None:
        super().__init__(BinaryNullPayloadConverter(), _Values())


CONVERTER = dataclasses.replace(DataConverter.default, payload_converter_class=_Converter)
