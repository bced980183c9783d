"""The location of a database: our parameters are taken out, and the driver gets the rest as it was given."""

import pytest

from turnlog import Invalid
from turnlog.store.postgres.pool import Location


@pytest.mark.parametrize(
    ("given", "url", "server"),
    [
        ("postgresql:///mydb", "postgresql:///mydb", "localhost:5432/mydb"),
        ("postgresql:///mydb?tenant=a", "postgresql:///mydb?", "localhost:5432/mydb"),
        ("postgresql://", "postgresql://", "localhost:5432/"),
        ("postgresql://?host=%2Ftmp&tenant=a&port=5433", "postgresql://?host=%2Ftmp&port=5433", "/tmp:5433/"),
        ("postgresql://u:p%40%3F@h/db", "postgresql://u:p%40%3F@h/db", "h:5432/db"),
        (
            "postgresql://u@h/db?application_name=a%20b&connections=3&options=-c%20x%3D1",
            "postgresql://u@h/db?application_name=a%20b&options=-c%20x%3D1",
            "h:5432/db",
        ),
    ],
)
def test_the_driver_gets_what_was_given(given: str, url: str, server: str) -> None:
    location = Location(given)
    assert (location.url, location.server) == (url, server)


@pytest.mark.parametrize(
    ("hosts", "server"),
    [
        ("one,two", "one:5432,two:5432/db"),
        ("one,two:5433", "one:5432,two:5433/db"),
        ("one:5433,two:5434", "one:5433,two:5434/db"),
    ],
)
def test_several_hosts_need_no_port_each(hosts: str, server: str) -> None:
    assert Location(f"postgresql://{hosts}/db?target_session_attrs=read-write").server == server


def test_one_port_can_be_that_of_all_hosts() -> None:
    assert Location("postgresql:///db?host=one,two&port=5433").server == "one:5433,two:5433/db"


def test_our_parameters_are_understood_however_they_are_escaped() -> None:
    location = Location("postgresql://h/db?ten%61nt=%C3%A4%20%26+b&pooler=session&connections=7")
    assert (location.tenant, location.pooler, location.connections) == ("ä & b", "session", 7)
    assert Location("postgresql:///db").of("ä &") == "postgresql:///db?tenant=%C3%A4%20%26"


def test_what_is_no_location_is_refused_without_its_password() -> None:
    with pytest.raises(Invalid) as error:
        Location("postgresql://u:secret@h:port/db")
    assert "secret" not in str(error.value)
