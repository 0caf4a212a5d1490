"""The folder and the port are one instance's alone."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from okmq.supervision import proctable
from okmq.supervision.claims import end_leftovers, take_folder, take_port
from okmq.supervision.supervisor import StartError
from tests.waiting import until


def test_a_folder_in_use_names_the_folder_and_the_process(tmp_path: Path) -> None:
    lock = take_folder(tmp_path)
    with pytest.raises(StartError) as refused:
        take_folder(tmp_path)
    assert str(tmp_path) in str(refused.value)
    assert f"process {os.getpid()}" in str(refused.value)
    os.close(lock)


def test_a_folder_is_free_when_its_holder_is_gone(tmp_path: Path) -> None:
    os.close(take_folder(tmp_path))
    os.close(take_folder(tmp_path))


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match="cannot be used: Not a directory"):
        take_folder(tmp_path / "file" / "data")


def test_a_busy_port_names_the_address_and_the_variable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(StartError, match=f"Port {port} on 127.0.0.1 is taken.*OKMQ_PORT"):
            take_port("127.0.0.1", port=port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_of_another_machine_names_the_variable(host: str) -> None:
    with pytest.raises(StartError, match="OKMQ_HOST="):
        take_port(host, port=1)


def test_a_port_serves_on_ipv6_too() -> None:
    with take_port("::1", port=0) as listener:
        assert listener.family == socket.AF_INET6


def test_answers_on_the_port_are_sent_without_delay() -> None:
    with take_port("127.0.0.1", port=0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_what_an_earlier_instance_left_running_is_ended(tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    environ = {**os.environ, proctable.MARK: str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", deaf], env=environ, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        end_leftovers(tmp_path, within_s=1)
        assert left.wait() == -signal.SIGKILL


def test_the_processes_of_another_folder_are_left_alone(tmp_path: Path) -> None:
    environ = {**os.environ, proctable.MARK: str(tmp_path / "other")}
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], env=environ) as other:
        until(lambda: proctable.marked(tmp_path / "other"))
        end_leftovers(tmp_path)
        assert other.poll() is None
        other.terminate()
