"""What all commands have in common, and `antiphon bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import cli
from tests.app.serving import Serving


@pytest.mark.parametrize(
    "command", [["doctor"], ["eval"], ["models", "list"], ["say", "Hello."], ["serve"], ["voices"]]
)
def test_a_wrong_setting_is_named(command: list[str]) -> None:
    done = CliRunner().invoke(cli, command, env={"ANTIPHON_PORT": "many", "COLUMNS": "200"})
    assert done.exit_code == 2
    assert "ANTIPHON_PORT" in done.output
    assert "'many'" in done.output


def test_bench_prints_a_row_for_each_number_of_clients(humming: Serving) -> None:
    options = ["--url", humming.base_url, "--clients", "1, 2", "--rounds", "1", "--json"]
    done = CliRunner().invoke(cli, ["bench", *options])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [row["clients"] for row in rows] == [1, 2]
    assert all(row["audio_per_second"] > 0 for row in rows)


@pytest.mark.parametrize("clients", ["few", "0", "1,", "-1"])
def test_bench_names_a_wrong_number_of_clients(clients: str) -> None:
    done = CliRunner().invoke(cli, ["bench", f"--clients={clients}"], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert "--clients" in done.output
    assert "whole numbers from 1" in done.output


def test_bench_without_a_server_says_so() -> None:
    done = CliRunner().invoke(cli, ["bench", "--url", "http://127.0.0.1:9", "--clients", "1"])
    assert done.exit_code == 1
    assert "The server at http://127.0.0.1:9 did not answer" in done.output


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("")
    environment = {"ANTIPHON_CACHE_FOLDER": str(folder), "COLUMNS": "200"}
    done = CliRunner().invoke(cli, ["models", "fetch", "silero-vad"], env=environment)
    assert done.exit_code == 1
    assert f"silero-vad cannot be kept in {folder}" in done.stderr
    assert "ANTIPHON_CACHE_FOLDER" in done.stderr
