"""What C and Python share about TFRecord files: mirrors records.h."""

from __future__ import annotations

from ctypes import Structure, c_char, c_int64, c_uint32, c_uint64

FEATURES, VALUES, PLACES, MASKS, NAME, EVENTS, BLOBS, CELLS = 64, 17, 4, 17, 120, 1024, 4096, 16384
NEED_MORE, AT_LIMIT, BAD_LENGTH, BAD_DATA, FULL = range(5)
KINDS = ("empty", "bytes", "float", "int64")
RAW, EXAMPLE, SEQUENCE_EXAMPLE = range(3)
KIND_SHIFT = 56


class PlaceC(Structure):
    _fields_ = (("record", c_uint64), ("offset", c_uint64), ("size", c_uint64))


class ValueC(Structure):
    _fields_ = (("value", c_uint64), ("count", c_uint64), ("places", PlaceC * PLACES))


class FeatureC(Structure):
    _fields_ = (
        ("name", c_char * NAME),
        ("name_length", c_uint32),
        ("in_list", c_uint32),
        ("lengths_used", c_uint32),
        ("sizes_used", c_uint32),
        ("lengths", ValueC * VALUES),
        ("sizes", ValueC * VALUES),
    )


class EventC(Structure):
    _fields_ = (("place", PlaceC), ("feature", c_uint64), ("count", c_uint64))


class BlobC(Structure):
    _fields_ = (
        ("place", PlaceC),
        ("start", c_uint64),
        ("size", c_uint64),
        ("feature", c_uint32),
        ("cells", c_uint32),
        ("cell_count", c_uint32),
        ("unused", c_uint32),
    )


class CellC(Structure):
    _fields_ = (
        ("feature", c_uint32),
        ("kind", c_uint32),
        ("length", c_uint64),
        ("size", c_uint64),
        ("first", c_int64),
    )


class StateC(Structure):
    _fields_ = (
        ("limit", c_uint64),
        ("parse", c_uint32),
        ("unused", c_uint32),
        ("record", c_uint64),
        ("stopped", c_uint32),
        ("feature_count", c_uint32),
        ("sizes", c_uint64 * 65),
        ("largest", PlaceC),
        ("kinds", ValueC * 3),
        ("masks_used", c_uint64),
        ("masks", ValueC * MASKS),
        ("more_features", c_uint64),
        ("event_count", c_uint32),
        ("blob_count", c_uint32),
        ("cell_count", c_uint32),
        ("unused2", c_uint32),
        ("events_untold", c_uint64),
        ("features", FeatureC * FEATURES),
        ("events", EventC * EVENTS),
        ("blobs", BlobC * BLOBS),
        ("cells", CellC * CELLS),
    )
