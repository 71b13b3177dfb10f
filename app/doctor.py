"""Looks at an installation and says in plain words what is wrong with it and how to mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.doctor_finding import SETUP, Finding, Severity, fine
from app.doctor_libraries import check_libraries, look_at_libraries
from app.doctor_machine import (
    check_cache,
    check_compiler,
    check_cores,
    check_encoders,
    check_memory,
    check_port,
    check_processor,
    check_python,
)
from app.settings import Settings
from engine import ConfigurationError
from engine.catalogue import Catalogue


def examine(settings: Settings) -> Iterator[Finding]:
    """Makes every check, the quick ones first; yields each finding as it is made."""
    quick: list[Callable[[], Finding]] = [
        check_python,
        check_processor,
        check_cores,
        check_memory,
        check_compiler,
        check_encoders,
        lambda: check_cache(settings.cache_folder),
        lambda: check_port(settings.host, settings.port),
    ]
    for check in quick:
        yield check()
    architectures: list[str] = []
    try:
        catalogue = Catalogue.installed(settings.cache_folder)
        architectures = catalogue.architectures
        yield from check_models(catalogue)
    except ConfigurationError as error:
        yield Finding("catalogue", Severity.WRONG, str(error), SETUP)
    yield from check_libraries(look_at_libraries(architectures))


def check_models(catalogue: Catalogue) -> Iterator[Finding]:
    """Whether the models that serving needs are there, and none that was fetched is damaged."""
    for model in catalogue.models:
        problem = catalogue.problem(model.name)
        needed = "serve" in model.entry.wanted_for
        check = f"model {model.name}"
        if problem is None:
            yield fine(check, "whole")
        elif needed or catalogue.is_fetched(model.name):
            severity = Severity.WRONG if needed else Severity.WARNING
            yield Finding(check, severity, f"It cannot be used: {problem}.", model.mend)
