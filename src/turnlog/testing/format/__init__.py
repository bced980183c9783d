"""The contract of a format, as tests that any format inherits."""

from __future__ import annotations

from turnlog.testing.format.reading import ReadingTests
from turnlog.testing.format.writing import WritingTests


class FormatContract(ReadingTests, WritingTests):
    """Every promise of `turnlog.formats`. Inherit it in a class whose name begins with `Test`.

    `name` is the format's; `samples` are files or folders of that agent, each with sessions in it. `writes` is False
    for a format that is only read. `format` is the value itself, for one that does not come with Turnlog: there need be
    no installed package that names it.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.writes:
            for test in vars(WritingTests):
                if test.startswith("test_"):
                    setattr(cls, test, None)  # what is no function is not collected
