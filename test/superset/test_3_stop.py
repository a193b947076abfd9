"""What Ctrl-C leaves of tools/superset."""

import pathlib
import re
import socket


def test_nothing_stays(superset):
    homes = set()
    for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            text = environment.read_bytes().decode(errors="replace")
            command = environment.with_name("cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if f"127.0.0.1:{superset.port}" in command and "gunicorn" in command:
            homes.update(re.findall(r"(?:^|\0)SUPERSET_HOME=([^\0]+)", text))
    (home,) = map(pathlib.Path, homes)
    assert (home / "superset.db").exists()
    assert superset.stop() == 130
    assert not home.parent.exists()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", superset.port)) != 0
