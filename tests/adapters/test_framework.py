"""A framework that is not installed."""

import pytest

from turnlog import Unsupported
from turnlog.adapters._framework import import_framework


def test_a_framework_that_is_not_there_says_what_to_install():
    with pytest.raises(Unsupported) as error:
        import_framework("no_such_framework", "langgraph")
    assert error.value.hint == "pip install 'turnlog[langgraph]'"
