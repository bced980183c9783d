"""A guard around the formats of other packages: whatever one of them raises costs only its own sessions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import ParamSpec, TypeVar

from msgspec.structs import replace

from turnlog.errors import TurnlogError, TurnlogWarning, Unsupported
from turnlog.formats._contract import Format, Reading, ResumePoint, Source, Step, Writing
from turnlog.interop.problem import Problem

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Growth = Callable[[Source, ResumePoint], Reading | None]


def guarded(origin: str, form: Format) -> Format:
    """That format with every function guarded; `origin` names it in warnings and errors."""
    guard = _Guard(origin)
    write, resume, watch, retention = form.write, form.resume, form.watch, form.retention
    return replace(
        form,
        homes=guard.otherwise(list, form.homes),
        find=partial(guard.find, form.find),
        read=partial(guard.read, form.read),
        write=guard.writing(write) if isinstance(write, Writing) else write and guard.loaded(write),
        resume=resume and replace(
            resume,
            command=guard.refusing("resume it", resume.command),
            model=resume.model and guard.otherwise(lambda: None, resume.model),
        ),
        growth=form.growth and guard.otherwise(lambda: None, partial(guard.growth, form.growth)),
        watch=replace(
            watch,
            stamps=watch.stamps and guard.otherwise(dict, watch.stamps),
            sidecars=watch.sidecars and guard.otherwise(list, watch.sidecars),
        ),
        retention=retention and replace(
            retention,
            settings=guard.otherwise(str, retention.settings),
            days=guard.otherwise(lambda: None, retention.days),
        ),
    )  # fmt: skip


def error_line(error: Exception) -> str:
    """An error on one line, with its type."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


class _Guard:
    def __init__(self, origin: str) -> None:
        self._origin = origin

    def otherwise(self, make: Callable[[], _T], call: Callable[_P, _T]) -> Callable[_P, _T]:
        """That function; if it raises, people are warned, and `make()` is what it gives."""

        def called(*given: _P.args, **named: _P.kwargs) -> _T:
            try:
                return call(*given, **named)
            except Exception as error:
                self._warn(error)
                return make()

        return called

    def refusing(self, what: str, call: Callable[_P, _T]) -> Callable[_P, _T]:
        """That function; if it raises, `Unsupported` says that the format cannot do that."""

        def called(*given: _P.args, **named: _P.kwargs) -> _T:
            try:
                return call(*given, **named)
            except (OSError, TurnlogError):
                raise
            except Exception as error:
                raise Unsupported(f"{self._origin} cannot {what}: {error_line(error)}") from error

        return called

    def _warn(self, error: Exception) -> None:
        warnings.warn(f"{self._origin} failed: {error_line(error)}", TurnlogWarning, stacklevel=4)

    def find(self, find: Callable[[str], Iterator[Source]], path: str) -> Iterator[Source]:
        try:
            yield from find(path)
        except Exception as error:
            self._warn(error)

    def read(self, read: Callable[[Source], Reading], source: Source) -> Reading:
        try:
            return self._reading(read(source))
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{self._origin} cannot read it: {error_line(error)}") from error

    def growth(self, growth: _Growth, source: Source, start: ResumePoint) -> Reading | None:
        reading = growth(source, start)
        return reading and self._reading(reading)

    def _reading(self, reading: Reading) -> Reading:
        reading.steps = self._steps(reading.steps, reading)
        return reading

    def _steps(self, steps: Iterator[Step], reading: Reading) -> Iterator[Step]:
        try:
            yield from steps
        except OSError:
            raise
        except Exception as error:
            reading.mark = None  # what is missing has to be read again
            reading.problems.append(Problem(f"{self._origin} broke off: {error_line(error)}"))

    def loaded(self, load: Callable[[], Writing]) -> Callable[[], Writing]:
        return self.refusing("write", lambda: self.writing(load()))

    def writing(self, writing: Writing) -> Writing:
        render, place = self.refusing("write it", writing.render), self.refusing("place it", writing.place)
        return replace(writing, render=render, place=place)
