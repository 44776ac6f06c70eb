"""Exceptions. Everything that an input can cause is a `TemponetError`, which is also a `ValueError`."""

from __future__ import annotations


class TemponetError(Exception):
    """Anything that this package raises about its input."""


class InputError(TemponetError, ValueError):
    """An argument, a file or a setting that cannot be used.

    `message` says what is wrong, with the offending value. `file` and `line` say where, if it is in a file.
    """

    message: str
    file: str | None
    line: int | None

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(place + message)
        self.message = message
        self.file = file
        self.line = line

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str | None, int | None]]:
        return type(self), (self.message, self.file, self.line)


class FileError(InputError):
    """A file that cannot be used, with its name and the line.

    >>> import temponet
    >>> try:
    ...     temponet.TaskSet.parse('[[task]]\\nname = "a"\\nperiod = "10ms"\\nwcet = "fast"\\n', origin="mine.toml")
    ... except temponet.FileError as error:
    ...     print(error.file, error.line)
    mine.toml 4
    """
