"""What `async with` needs of an object that is closed."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self


class Closing:
    """An object that `async with` closes when it is left."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of what it holds."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
