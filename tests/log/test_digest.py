"""Digests without OpenSSL are the same as with it."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from turnlog.log.digest import LITTLE, blake2b, sha256

TOLD = """
import sys
{before}
from turnlog.log.digest import LITTLE, sha256
for size in (0, 10, 100):
    print(sha256(b"x" * size).hexdigest())
print("_hashlib" in sys.modules)
print(sha256(b"x" * (LITTLE - 110)).hexdigest(), "_hashlib" in sys.modules)
print(sha256(b"x").hexdigest(), "_hashlib" in sys.modules)
"""


def told(before: str = "") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", TOLD.format(before=before)], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_little_is_hashed_without_openssl_and_much_with_it():
    pytest.importorskip("_sha2" if sys.version_info >= (3, 12) else "_sha256")
    sizes = (0, 10, 100, LITTLE - 110, 1)
    expected = [hashlib.sha256(b"x" * size).hexdigest() for size in sizes]
    *few, is_loaded, whole, is_still, more, is_now = told()
    assert [*few, whole, more] == expected
    assert (is_loaded, is_still, is_now) == ("False", "False", "True")


def test_a_python_without_its_own_takes_that_of_hashlib():
    name = "_sha2" if sys.version_info >= (3, 12) else "_sha256"
    before = f"import hashlib; sys.modules[{name!r}] = None"
    assert [word for word in told(before) if len(word) == 64] == [word for word in told() if len(word) == 64]


@pytest.mark.parametrize("size", [0, 1, LITTLE + 1])
def test_the_digests_are_those_of_hashlib(size: int):
    data = b"y" * size
    assert sha256(data).digest() == hashlib.sha256(data).digest()
    assert blake2b(data, digest_size=8).digest() == hashlib.blake2b(data, digest_size=8).digest()
    hashed = sha256()
    hashed.update(data)
    assert hashed.digest() == hashlib.sha256(data).digest()
