"""The peer beside the agent's streams: nginx with nchan, which keeps messages in memory and nowhere else."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from oplog_agent import Cost  # isort: skip
from tidemark.embedded.ports import LOOPBACK, free_port

NAME = "nginx with nchan"
MODULE = Path("/usr/lib/nginx/modules/ngx_nchan_module.so")
MISSING = f"{NAME} is not installed, so it was not measured: apt-get install nginx libnginx-mod-nchan"
CONFIGURATION = """
load_module {module};
daemon off;
user {user};
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen {host}:{port} backlog=2048;
    location = /pub {{ nchan_publisher; nchan_channel_id ops; nchan_message_buffer_length 1000; }}
    location = /sub {{
      nchan_subscriber eventsource; nchan_channel_id ops; nchan_subscriber_first_message newest;
    }}
  }}
}}
"""


@dataclass(frozen=True)
class RunningPeer:
    """An nginx that listens."""

    port: int
    process: psutil.Process

    @property
    def cost(self) -> Cost:
        """What its worker has used until now."""
        return Cost.of(self.process.children())


def find_nginx() -> str | None:
    """The program; None where it or its module is not installed."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    return program if MODULE.exists() else None


@contextmanager
def running_peer(folder: Path) -> Iterator[RunningPeer]:
    """A peer of its own."""
    program, port = find_nginx(), free_port(set())
    assert program is not None, MISSING
    user = psutil.Process().username()
    (folder / "nginx").mkdir()
    text = CONFIGURATION.format(module=MODULE, folder=folder / "nginx", host=LOOPBACK, port=port, user=user)
    (folder / "nginx" / "nginx.conf").write_text(text)
    command = [program, "-p", str(folder / "nginx"), "-c", str(folder / "nginx" / "nginx.conf")]
    process = subprocess.Popen(command, stderr=(folder / "nginx" / "said").open("w"))
    try:
        deadline = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(f"nginx does not start:\n{(folder / 'nginx' / 'said').read_text()[-2000:]}")
        yield RunningPeer(port, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(20)
