"""`.keras`: the archive that Keras writes, without holding the weights in memory a second time."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

from keras.src.saving import saving_lib

from faultlens.saved.manifest import SavedVariable
from faultlens.saving import hdf5_store
from faultlens.saving.errors import SaveError
from faultlens.saving.formats.base import Format
from faultlens.saving.hdf5_store import DirectStore
from faultlens.saving.region import Region

CONFIG, METADATA, WEIGHTS, ASSETS = "config.json", "metadata.json", "model.weights.h5", "assets"


class ArchiveFormat(Format):
    name = "keras"

    def write(self, path: Path) -> list[SavedVariable]:
        config, metadata = saving_lib._serialize_model_as_json(self.subject)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            whole = Region(descriptor)
            with zipfile.ZipFile(whole, "w") as archive:  # type: ignore[call-overload]
                archive.writestr(METADATA, metadata)
                archive.writestr(CONFIG, config)
                assets = saving_lib.DiskIOStore(ASSETS, archive=archive, mode="w")
                try:
                    variables = _write_weights(self, archive, whole, assets)
                finally:
                    assets.close()
        finally:
            os.close(descriptor)
        return variables

    def verify(self, path: Path, variables: list[SavedVariable]) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            whole = Region(descriptor, size=os.fstat(descriptor).st_size)
            with zipfile.ZipFile(whole) as archive:
                damaged = archive.testzip()
                if damaged is not None:
                    raise SaveError(f"{damaged} in {path.name} was read back damaged.", "Save to another disk.")
                member = archive.getinfo(WEIGHTS)
            hdf5_store.verify(Region(descriptor, _start_of(whole, member), member.file_size), variables)
        finally:
            os.close(descriptor)


def _write_weights(form: Format, archive: zipfile.ZipFile, whole: Region, assets: Any) -> list[SavedVariable]:
    """HDF5 writes here and there, an archive from front to back: so the weights are written in their place first, and
    then passed through the archive, which takes the checksum and writes the same bytes over themselves."""
    with archive.open(zipfile.ZipInfo(WEIGHTS), "w", force_zip64=True) as member:
        inset = Region(whole.descriptor, whole.tell())
        store = DirectStore(inset, form.values)
        try:
            saving_lib._save_state(
                form.subject, weights_store=store, assets_store=assets, inner_path="", visited_saveables=set()
            )
        finally:
            store.close()
        for block in inset.blocks():
            member.write(block)
    return store.variables


def _start_of(whole: Region, member: zipfile.ZipInfo) -> int:
    """Behind its header, whose length is that of the name and of the extra field that it carries itself."""
    whole.seek(member.header_offset)
    header = whole.read(30)
    return member.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
