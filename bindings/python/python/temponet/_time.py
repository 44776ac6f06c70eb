"""Times: whole nanoseconds, texts such as "500ms", or `datetime.timedelta`."""

from __future__ import annotations

from datetime import timedelta
from typing import Union

from . import _temponet as native
from .errors import InputError

Time = Union[int, str, timedelta]
"""A time: nanoseconds as an `int`, a text with a unit ("10s", "500ms", "3us", "7ns"), or a `timedelta`."""


def nanoseconds(name: str, time: Time) -> int:
    """Converts a time to nanoseconds.

    >>> nanoseconds("horizon", "1.5ms")
    1500000
    """
    if isinstance(time, str):
        try:
            return native.time(time)
        except InputError as error:
            raise InputError(f"{name} = {error}") from None
    if isinstance(time, timedelta):
        time = time // timedelta(microseconds=1) * 1000
    if not isinstance(time, int) or isinstance(time, bool):
        raise InputError(f"{name} = {time!r} is not a time: whole nanoseconds, a text such as 500ms, or a timedelta")
    if not 0 <= time <= native.LONGEST:
        raise InputError(f"{name} = {time!r} is not from 0 to {native.LONGEST} nanoseconds")
    return time


def optional(name: str, time: Time | None) -> int | None:
    """Converts a time that may be missing."""
    return None if time is None else nanoseconds(name, time)


def positive(name: str, time: Time | None) -> int | None:
    """Converts a time greater than zero that may be missing."""
    found = optional(name, time)
    if found == 0:
        raise InputError(f"{name} = {time!r} is not greater than zero")
    return found
