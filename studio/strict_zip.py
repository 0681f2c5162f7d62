"""A zip file from a stranger, read within limits: nothing in it names a place on this machine.

What a zip says about itself is judged before anything is unpacked, and counted again while reading.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MOST_RATIO = 200  # unpacked over packed
_END, _END_64, _PLACE_64 = b"PK\5\6", b"PK\6\6", b"PK\6\7"  # the marks that end a zip
_LONGEST_END = 22 + 65535
_DAMAGE = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError)


@dataclass(frozen=True)
class ZipLimits:
    """How much a zip may hold. ``what`` is its name in sentences ("The project")."""

    what: str
    entries: int
    bytes: int  # of all entries together, unpacked


class StrictZip:
    """Entries by name, read into memory one by one. Every failure is ``refused(sentence)``, an exception."""

    def __init__(self, path: Path, limits: ZipLimits, refused: Callable[[str], Exception]) -> None:
        self._limits, self._refuse = limits, refused
        self._refused: type[Exception] = type(refused(""))
        try:
            self._refuse_crowd(path)
            self._zip = zipfile.ZipFile(path)
        except _DAMAGE as error:
            raise self._unreadable(error) from error
        try:
            self.entries = self._checked()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> StrictZip:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def read(self, name: str, most: int) -> bytes:
        """One entry, never more than ``most`` bytes whatever its header says."""
        info = self.entries.get(name)
        if info is None:
            raise self._refuse(f"{self._limits.what} is incomplete: {name[:80]!r} is not in it.")
        if info.file_size > most:
            raise self._refuse(f"The entry {name!r} has {info.file_size} bytes; {most} is the most.")
        try:
            with self._zip.open(info) as file:
                data = file.read(most + 1)
        except _DAMAGE as error:
            raise self._unreadable(error) from error
        if len(data) > most:
            raise self._refuse(f"The entry {name!r} is larger than it says. It is not opened.")
        return data

    def _unreadable(self, error: Exception) -> Exception:
        if isinstance(error, self._refused):
            return error
        return self._refuse(f"{self._limits.what} is not a readable zip file ({error}). Export it again.")

    def _refuse_crowd(self, path: Path) -> None:
        """Refuse a list of entries that would fill the memory before a single one is looked at."""
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LONGEST_END))
            tail = file.read()
            at = len(tail) - 22 if tail[-22:].startswith(_END) else tail.rfind(_END)
            if at < 0 or at + 22 > len(tail):
                raise self._refuse(f"{self._limits.what} is not a zip file, or it is cut off. Export it again.")
            entries, listed = struct.unpack_from("<HI", tail, at + 10)
            if at >= 20 and tail[at - 20 : at].startswith(_PLACE_64):
                file.seek(min(size, struct.unpack_from("<Q", tail, at - 12)[0]))
                end = file.read(56)
                if len(end) < 56 or not end.startswith(_END_64):
                    raise self._refuse(f"{self._limits.what} is damaged at its end. Export it again.")
                entries, listed = struct.unpack_from("<QQ", end, 32)
        if entries > self._limits.entries or listed > 300 * self._limits.entries:
            raise self._refuse(f"{self._limits.what} has too many entries; {self._limits.entries} are the most.")

    def _checked(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._zip.infolist()
        if len(infos) > self._limits.entries:
            raise self._refuse(f"{self._limits.what} has {len(infos)} entries; {self._limits.entries} are the most.")
        entries: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            self._refuse_odd(info)
            if info.filename in entries:
                raise self._refuse(f"{self._limits.what} has two entries called {info.filename[:80]!r}.")
            entries[info.filename] = info
        total = sum(info.file_size for info in infos)
        most = self._limits.bytes
        if total > most:
            raise self._refuse(f"{self._limits.what} would unpack to {total // 10**6} MB; {most // 10**6} MB is most.")
        return entries

    def _refuse_odd(self, info: zipfile.ZipInfo) -> None:
        name, parts = info.filename, info.filename.split("/")
        if name != info.orig_filename or len(name) > 200 or not name.isprintable() or "\\" in name or ":" in name:
            raise self._refuse(f"{self._limits.what} has an entry with an unusable name: {name[:80]!r}.")
        if ".." in parts or "" in parts or "." in parts:
            raise self._refuse(f"{self._limits.what} has an entry that points outside of it: {name[:80]!r}.")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise self._refuse(f"The entry {name!r} is a link or no file.")
        if info.flag_bits & 1:
            raise self._refuse(f"The entry {name!r} is encrypted. Export it without a password.")
        if info.file_size > MOST_RATIO * max(info.compress_size, 1) + 4096:
            raise self._refuse(f"The entry {name!r} is packed more tightly than it can be. It is not opened.")
