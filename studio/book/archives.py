"""Zip archives from strangers: members are read into memory one by one, by name, and never written to disk."""

from __future__ import annotations

import io
import lzma
import posixpath
import struct
import zipfile
import zlib
from urllib.parse import unquote

from lxml import etree

from studio.book.errors import ImportingError

MOST_MEMBERS = 20_000
MEMBER_BYTES = 64 * 2**20
ALL_BYTES = 256 * 2**20  # of what is read of one archive, unpacked
# What zipfile raises for members that are broken in one way or another; no pickle and no code is involved.
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, RuntimeError, ValueError)
_XML = {"resolve_entities": False, "no_network": True, "load_dtd": False, "dtd_validation": False, "huge_tree": False}


class Archive:
    """A zip file that is only read from, within limits. Every failure is an ImportingError about ``name``."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._left = ALL_BYTES
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise ImportingError(
                f"{name} is damaged: it is not a complete zip archive ({error}). Download it once more."
            ) from error
        self._members = {member.filename: member for member in self._zip.infolist()}
        if len(self._members) > MOST_MEMBERS:
            raise ImportingError(f"{name} holds {len(self._members)} files; at most {MOST_MEMBERS} are accepted.")

    def __contains__(self, member: str) -> bool:
        return member in self._members

    def names(self) -> list[str]:
        return list(self._members)

    def read(self, member: str) -> bytes:
        """One member, unpacked. Sizes are counted while reading: what the archive says about itself may be untrue."""
        found = self._members.get(member)
        if found is None:
            raise ImportingError(f"{self.name} is incomplete: {member} is missing in it.")
        if found.flag_bits & 1:
            raise ImportingError(f"{self.name} is locked with a password. Unlock it and import it again.")
        limit = min(MEMBER_BYTES, self._left)
        try:
            with self._zip.open(found) as file:
                data = file.read(limit + 1)
        except _DAMAGE as error:
            raise ImportingError(f"{self.name} is damaged: {member} cannot be unpacked ({error}).") from error
        if len(data) > limit:
            raise ImportingError(
                f"{self.name} unpacks to more than {limit // 2**20} MB at {member}; books are smaller. It is refused."
            )
        self._left -= len(data)
        return data

    def xml(self, member: str) -> etree._Element:
        """The root of an XML member. Nothing outside the file is ever loaded and no entity of its own is expanded."""
        return parse_xml(self.read(member), f"{member} in {self.name}")


def parse_xml(data: bytes, name: str) -> etree._Element:
    try:
        root = etree.fromstring(data, etree.XMLParser(**_XML))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ImportingError(f"{name} is damaged: {str(error).strip()}.") from error
    return root


def resolve(base: str, href: str) -> tuple[str, str]:
    """(member, fragment) that ``href`` in the member ``base`` points to; member "" for what is outside the archive."""
    target, _, fragment = href.partition("#")
    target, fragment = unquote(target), unquote(fragment)
    if not target:
        return base, fragment
    if "://" in target or target.startswith(("/", "\\")) or "\\" in target:
        return "", ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), target))
    return ("", "") if path.startswith("..") else (path, fragment)
