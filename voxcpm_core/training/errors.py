"""What can go wrong before and during a training, as sentences."""

from ..errors import VoxCPMError


class TrainingError(VoxCPMError, RuntimeError):
    """A training cannot start, go on or be saved."""


class DataError(TrainingError, ValueError):
    """Training data is missing, unreadable or does not fit the model; the message names file, line and reason."""
