"""What msgspec can do without is not loaded, and is there for whoever asks for it."""

import subprocess
import sys


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


QUICK = (
    "import sys\nfrom turnlog.machine.modules import quick_imports\nwith quick_imports():\n    import msgspec, uuid\n"
)


def test_msgspec_loads_none_of_them():
    assert run(f"{QUICK}print({{'platform', 'textwrap', 'typing_extensions'}} & set(sys.modules))") == "set()"


def test_uuid_knows_its_system():
    assert run(f"{QUICK}print(uuid._LINUX)") == run("import uuid; print(uuid._LINUX)")


def test_zstandard_knows_its_interpreter():
    loads = (
        "import sys\nfrom turnlog.machine.modules import quick_imports\nwith quick_imports():\n    import zstandard\n"
    )
    backend = "import zstandard\nprint(zstandard.backend)"
    assert run(f"{loads}print(zstandard.backend)") == run(backend)
    assert run(f"{loads}print('platform' in sys.modules)") == "False"


def test_who_asks_for_more_gets_the_real_one():
    inside = f"{QUICK}with quick_imports():\n    import platform\n    print(platform.python_version())\n"
    version = ".".join(map(str, sys.version_info[:3]))
    assert run(inside).startswith(version)
    assert run(f"{QUICK}print(uuid.platform.python_version())").startswith(version)
    assert run(f"{inside}import platform\nprint(platform.__file__)").splitlines()[1].endswith("platform.py")


def test_what_msgspec_asks_of_them_later_is_there():
    use = "import msgspec\nclass A(msgspec.Struct):\n    'a text'\nprint(msgspec.json.schema(A)['$defs']['A'])\n"
    assert run(f"{QUICK}{use}") == run(use)
    assert run(f"{QUICK}from textwrap import dedent\nprint(dedent('  a'))") == "a"


def test_what_was_loaded_before_stays():
    before = "import platform, sys\nloaded = platform\n"
    assert run(f"{before}{QUICK}print(sys.modules['platform'] is loaded, uuid.platform is loaded)") == "True True"
