"""Regular expressions that are compiled at their first use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:

    def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """As `re.compile`."""
        ...

else:

    class pattern:
        """As `re.compile`, but compiled at the first use: compiling all of them takes longer than many commands.

        Only the first use of a method is slower: after that, the pattern's own method is an attribute here.
        """

        def __init__(self, text: AnyStr, flags: int = 0) -> None:
            self._arguments = text, flags

        def __getattr__(self, name: str) -> Any:
            value = getattr(re.compile(*self._arguments), name)
            setattr(self, name, value)
            return value
