"""Everything that the package raises is a chunkmill.Error, and the built-in exception that fits as well."""
from __future__ import annotations


class Error(Exception):
    """Something failed; the text says what, in one sentence.

    Attributes:
        status: a short name to branch on: "invalid", "not-found", "io", "format", "budget", ...
    """

    def __init__(self, text: str, status: str = "internal") -> None:
        super().__init__(text)
        self.status = status


class InvalidError(Error, ValueError):
    """An argument has a value that has no meaning, or a call comes when it cannot."""

    def __init__(self, text: str, status: str = "invalid") -> None:
        super().__init__(text, status)


class ArgumentTypeError(InvalidError, TypeError):
    """An argument is of a type that it cannot have."""


class StorageError(Error, OSError):
    """Reading from storage failed: a disk, a server, a store that was removed meanwhile."""

    def __init__(self, text: str, status: str = "io") -> None:
        super().__init__(text, status)


class NotFoundError(StorageError, FileNotFoundError):
    """There is no such store, file or library."""

    def __init__(self, text: str, status: str = "not-found") -> None:
        super().__init__(text, status)


class OutOfMemoryError(Error, MemoryError):
    """The memory that `memory` allows, or that the machine has, is too small."""

    def __init__(self, text: str, status: str = "budget") -> None:
        super().__init__(text, status)


class UnsupportedError(Error, NotImplementedError):
    """The store is in order, and uses a codec, a type or a scheme that is not supported."""

    def __init__(self, text: str, status: str = "unsupported") -> None:
        super().__init__(text, status)


class FormatError(Error):
    """The store is damaged: metadata or chunks are not what they should be."""

    def __init__(self, text: str, status: str = "format") -> None:
        super().__init__(text, status)


class HolesWarning(UserWarning):
    """Chunks of a store are absent, and read as fill: left out on purpose, or lost."""


_CLASSES: dict[str, type[Error]] = {
    "invalid": InvalidError, "memory": OutOfMemoryError, "budget": OutOfMemoryError, "io": StorageError,
    "no-space": StorageError, "exists": StorageError, "not-found": NotFoundError, "format": FormatError,
    "unsupported": UnsupportedError}


def of_status(text: str, status: str) -> Error:
    """The exception for a status of the library."""
    return _CLASSES.get(status, Error)(text, status)
