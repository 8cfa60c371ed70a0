"""What a child that a document took over can reach: not the handler's secrets, no network, no file, no process."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.content.confinement import SECRET_VARIABLES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")

SECRET = "kRz7PqLw02VxNbTm" + "9sYhGd41JcUfEa6o"
#: As in Lambda: a user of no rights, and no /dev/shm to write to. It may read the code, wherever that lies.
AS_NOBODY = (
    "mount -t tmpfs -o ro none /dev/shm && exec setpriv --reuid 65534 --regid 65534 --clear-groups "
    "--bounding-set -all,+dac_read_search --inh-caps -all,+dac_read_search --ambient-caps -all,+dac_read_search "
)


def look(limits: dict[str, Any], *, as_root: bool = False) -> dict[str, Any]:
    """The findings of `confinement.py`; without `as_root`, never as root."""
    command = [sys.executable, str(Path(__file__).with_name("confinement.py")), json.dumps(limits)]
    if as_root != (os.getuid() == 0):
        if as_root:
            pytest.skip("not root")
        if shutil.which("setpriv") is None or shutil.which("unshare") is None:
            pytest.skip("needs setpriv and unshare to be somebody else than root")
        command = ["unshare", "--mount", "sh", "-c", AS_NOBODY + shlex.join(command)]
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PATH": os.defpath,
        **dict.fromkeys(SECRET_VARIABLES, SECRET),
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("may not make namespaces")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("as_root", [False, True], ids=["as nobody", "as root"])
def test_a_child_has_no_way_to_anything(as_root: bool) -> None:
    found = look({}, as_root=as_root)
    assert (found["uid"] == 0) == as_root
    assert set(found["files"].values()) == {"OSError"}  # EMFILE: no descriptor is to be had, for any file
    assert found["descriptors of others"] == ["PermissionError"] * 2
    assert (found["own environment file"], found["write"]) == ("OSError", "OSError")
    assert (found["connect"], found["close and connect"]) == ("OSError", "OSError")
    assert found["raise limits"] == "ValueError"
    assert found["import"] == "ModuleNotFoundError"
    assert found["trace"] == found["memory"] == ["PermissionError"] * 2
    assert found["fork"] == ("" if as_root else "BlockingIOError")  # the limit of processes does not bind root
    assert len(found["descriptors"]) == 4  # the null device three times, and its own socket
    assert set(found["environment"]) <= {"LD_LIBRARY_PATH", "LC_CTYPE"}  # Python sets LC_CTYPE itself (PEP 538)


@pytest.mark.parametrize("as_root", [False, True], ids=["as nobody", "as root"])
def test_secrets_are_closed_to_a_child_that_can_open_files(as_root: bool) -> None:
    """The second wall, alone: processes that are closed to each other, and a memory without secrets."""
    found = look({"descriptors": 64, "processes": 64}, as_root=as_root)
    assert set(found["files"].values()) == {"PermissionError"}
    assert found["descriptors of others"] == ["PermissionError"] * 2
    assert found["trace"] == found["memory"] == ["PermissionError"] * 2
    assert found["secret in the child"] == 0
    assert found["secret in a child that was told"] > 0
    assert found["connect"] == ""  # which is why a child has no descriptor to give
