"""What the tests of the stores share."""

import pytest

pytest.register_assert_rewrite("tests.store.damaged")
