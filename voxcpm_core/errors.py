"""What can go wrong, as a tree. ``str(error)`` is always a finished sentence that a user can read.

Everything derives from :class:`VoxCPMError`, so one ``except`` at the edge of a program is enough. Errors about what
the caller gave are also ``ValueError``, errors about the machine or the files are also ``RuntimeError``.
"""


class VoxCPMError(Exception):
    """Root of all errors raised on purpose by this package."""


class RequestError(VoxCPMError, ValueError):
    """A request field is out of range or does not go with another one."""


class TextError(RequestError):
    """The text cannot be spoken (empty, or nothing speakable is left after cleaning)."""


class AudioError(RequestError):
    """A reference or prompt clip cannot be read or used."""


class UnsupportedError(RequestError):
    """The loaded generation of the model cannot do what was asked (for example a reference with VoxCPM1.5)."""


class CheckpointError(VoxCPMError, RuntimeError):
    """A checkpoint folder is incomplete or does not fit its config; the message lists files or tensors by name."""


class LoRAError(VoxCPMError, ValueError):
    """An adapter does not fit the loaded model; the message lists the keys, ``made_for`` is the model it names."""

    def __init__(self, message: str, made_for: str = "") -> None:
        super().__init__(message)
        self.made_for = made_for


class EngineError(VoxCPMError, RuntimeError):
    """The engine is closed or failed while generating; ``take`` then holds what was made so far, if anything."""

    take = None
