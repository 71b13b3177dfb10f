from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "install_system_packages.sh"


class Machine:
    """A machine of which only what the script asks for is there, in a folder of programs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.add("ldconfig", "echo '  libthere.so.1 (libc6) => /lib/libthere.so.1'")
        for name in ("sh", "env", "grep", "mktemp", "rm", "cat"):
            found = subprocess.run(["which", name], capture_output=True, text=True, check=True)
            (folder / name).symlink_to(found.stdout.strip())

    def add(self, name: str, body: str) -> None:
        program = self._folder / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)

    def add_apt(self, status: int = 0) -> None:
        self.add("apt-get", f'echo "$*" >>{self._folder}/asked; echo "apt says"; exit {status}')

    @property
    def asked(self) -> list[str]:
        """What apt-get was asked to do."""
        log = self._folder / "asked"
        return log.read_text().splitlines() if log.exists() else []

    def run(self, *pairs: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(SCRIPT), "the test", *pairs]
        environment = {"PATH": str(self._folder)}
        return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.add("id", "echo 0")
    return machine


def test_apt_is_not_asked_for_what_is_there(machine: Machine) -> None:
    machine.add("there", "true")
    machine.add_apt()
    result = machine.run("there:package-there", "libthere.so.1:libthere1")
    assert result.returncode == 0, result.stderr
    assert machine.asked == []
    assert "The system has what the test needs." in result.stdout


def test_data_is_looked_for_at_its_path(machine: Machine, tmp_path: Path) -> None:
    machine.add_apt()
    (tmp_path / "data").mkdir()
    machine.run(f"{tmp_path}/data:data-there", f"{tmp_path}/none:data-gone")
    assert machine.asked[1].endswith(" data-gone")


def test_only_what_is_missing_is_installed_after_an_update(machine: Machine) -> None:
    machine.add("there", "true")
    machine.add_apt()
    result = machine.run("there:package-there", "gone:package-gone", "libgone.so.1:libgone1")
    assert result.returncode == 0, result.stderr
    assert machine.asked[0] == "update"
    assert machine.asked[1].endswith("package-gone libgone1")


def test_others_than_root_use_sudo(machine: Machine) -> None:
    machine.add("id", "echo 1000")
    machine.add("sudo", 'exec "$@"')
    machine.add_apt()
    assert machine.run("gone:package-gone").returncode == 0
    assert len(machine.asked) == 2


def test_without_root_and_sudo_it_says_what_to_do(machine: Machine) -> None:
    machine.add("id", "echo 1000")
    machine.add_apt()
    result = machine.run("gone:package-gone")
    assert result.returncode == 1
    assert "run 'apt-get install package-gone' as root" in result.stderr
    assert machine.asked == []


def test_without_apt_it_names_what_is_missing(machine: Machine) -> None:
    result = machine.run("gone:package-gone")
    assert result.returncode == 1
    assert "package-gone" in result.stderr


def test_what_apt_said_is_shown_when_it_fails(machine: Machine) -> None:
    machine.add_apt(status=100)
    result = machine.run("gone:package-gone")
    assert result.returncode == 1
    assert "apt says" in result.stderr
