"""Faults in `pricing`."""

from tests.mutants.mutant import Mutant

PRICES = "tests/pricing/test_pricing.py"

MUTANTS = [
    Mutant(
        "price: an unknown model costs nothing",
        "pricing/__init__.py",
        "            unpriced = _sum(unpriced, {model: usage})\n",
        "",
        (PRICES,),
    ),
    Mutant(
        "price: tiers go by what was not cached",
        "pricing/__init__.py",
        "size = sum(counts[:4])",
        "size = sum(counts[:2])",
        (PRICES,),
    ),
    Mutant(
        "price: a request is paid for every entry it became",
        "pricing/__init__.py",
        "            paid.add(entry.request)\n",
        "",
        (PRICES,),
    ),
]
