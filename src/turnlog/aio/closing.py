"""The base of objects that `async with` closes."""

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
        """Release the resources of this object."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
