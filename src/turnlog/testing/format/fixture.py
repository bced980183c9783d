"""What the suites of the format contract share: the format under test, its samples, and a home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import pytest

import turnlog
from turnlog import Home, Imported
from turnlog.exchange.exporting.writing import writing_of
from turnlog.exchange.importing.run import import_all
from turnlog.formats import Format, Source, Writing, added, format_of
from turnlog.session.interior import interior


class FormatTests:
    """Tests of a format. Its attributes are explained in `FormatContract`."""

    name: ClassVar[str]
    format: ClassVar[Format | None] = None
    samples: ClassVar[list[Path]] = []
    writes: ClassVar[bool] = True

    @pytest.fixture(autouse=True)
    def _registered(self) -> Iterator[None]:
        assert self.samples, f"{self.name} has no samples"
        with added(self.name, self.format) if self.format is not None else nullcontext():
            yield

    @property
    def form(self) -> Format:
        """The format under test."""
        return format_of(self.name)

    @property
    def writing(self) -> Writing:
        """The part of the format that writes."""
        return writing_of(self.form, self.name)

    @pytest.fixture
    def home(self) -> Any:
        """A home of its own."""
        with turnlog.open("memory:") as home:
            yield home

    def import_sessions(self, home: Home, path: Path) -> list[Imported]:
        """Import every session at a path."""
        return list(import_all(interior(home).creator, list(self.form.find(str(path)))))

    def sources(self) -> list[Source]:
        """The sessions in the samples."""
        return [source for sample in self.samples for source in self.form.find(str(sample))]
