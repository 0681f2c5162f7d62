"""What can go wrong with a book. ``str(error)`` is always a finished sentence that a user can read."""

from voxcpm_core.errors import VoxCPMError


class BookError(VoxCPMError, ValueError):
    """Something about a book, a chapter or a segment cannot be done as asked."""


class ImportingError(BookError):
    """A file cannot be read as a book."""
