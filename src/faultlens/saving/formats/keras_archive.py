"""`.keras`: the archive that Keras writes, without holding the weights in memory a second time."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from keras.src.saving import saving_lib

from faultlens.model_files.crc32c import crc32c
from faultlens.model_files.manifest import SavedVariable
from faultlens.saving.checksums import Part, read_all
from faultlens.saving.errors import SaveError
from faultlens.saving.formats.base import Format
from faultlens.saving.hdf5_store import check, large_parts, write_state
from faultlens.saving.region import DiskFile, Region

CONFIG, METADATA, WEIGHTS, ASSETS = "config.json", "metadata.json", "model.weights.h5", "assets"
HEADER = 30  # bytes of a member's own header, before its name and extra field


class ArchiveFormat(Format):
    name = "keras"
    _shown = 0  # the CRC-32C of the weights as the archive saw them

    def write(self, path: Path) -> list[SavedVariable]:
        config, metadata = saving_lib._serialize_model_as_json(self.subject)
        with DiskFile(path, writing=True) as file:
            whole = Region(file)
            with zipfile.ZipFile(whole, "w") as archive:  # type: ignore[call-overload]
                archive.writestr(METADATA, metadata)
                archive.writestr(CONFIG, config)
                assets = saving_lib.DiskIOStore(ASSETS, archive=archive, mode="w")
                try:
                    return self._write_weights(archive, whole, assets)
                finally:
                    assets.close()

    def _write_weights(self, archive: zipfile.ZipFile, whole: Region, assets: Any) -> list[SavedVariable]:
        """HDF5 writes here and there, an archive from front to back. So the weights are written in their place, and
        then shown to the archive, which takes their checksum and length."""
        with archive.open(zipfile.ZipInfo(WEIGHTS), "w", force_zip64=True) as member:
            inset = Region(whole.file, whole.tell())
            variables = write_state(self.subject, inset, self.values, assets)
            with whole.written_already():
                for block in inset.blocks():
                    member.write(block)
                    self._shown = crc32c(block, self._shown)
        return variables

    def verify(self, path: Path, variables: list[SavedVariable]) -> int | None:
        with DiskFile(path) as file:
            whole = Region(file, size=file.size)
            with zipfile.ZipFile(whole) as archive:
                for member in archive.infolist():
                    if member.filename != WEIGHTS:
                        archive.read(member)  # compares its checksum
                weights = archive.getinfo(WEIGHTS)
            inset = Region(file, _start_of(whole, weights), weights.file_size)
            shown = Part(inset.start, inset.size)
            parts = large_parts(inset, variables)
            checksum = read_all(file, [shown, *parts.values()])
            check(parts, variables)
            if shown.value != self._shown:
                raise SaveError(f"{path.name} was read back damaged.", "Save to another disk.")
        return checksum


def _start_of(whole: Region, member: zipfile.ZipInfo) -> int:
    """Behind its header, which is as long as the name and the extra field that it carries."""
    whole.seek(member.header_offset)
    header = whole.read(HEADER)
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return member.header_offset + HEADER + lengths
