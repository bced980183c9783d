"""Faults planted into the code, one at a time: the tests have to notice every one of them. Each room has its module."""

import importlib
import pkgutil

from tests.mutants.mutant import Mutant

_ROOMS = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in ("mutant", "__main__"))
MUTANTS: list[Mutant] = [mutant for room in _ROOMS for mutant in importlib.import_module(f"{__name__}.{room}").MUTANTS]
