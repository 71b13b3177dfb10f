"""The form of a catalogue file: models, their files and their sources, as typed data."""

from __future__ import annotations

import difflib
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from engine.errors import ConfigurationError

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Strict(BaseModel):
    """A part of the catalogue: immutable, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                if key not in cls.model_fields:
                    near = difflib.get_close_matches(str(key), cls.model_fields, n=1, cutoff=0.0)
                    raise ValueError(f"unknown key {key!r}; did you mean {near[0]!r}?")
        return values


class ModelFile(_Strict):
    """One file of a model. Only files that ship inside a package may go without a digest."""

    size: int | None = Field(default=None, gt=0)
    sha256: Digest | None = None


class FolderSource(_Strict):
    """Files that are on this machine already. A relative path starts at the catalogue's folder."""

    folder: Path


class PackageSource(_Strict):
    """Files that travel inside packages of a Python registry.

    Attributes:
        packages: Versions by package name.
        members: By file name the parts, `package:path/in/the/wheel`, that make the file.
    """

    packages: dict[str, str] = Field(min_length=1)
    members: dict[str, list[str]]

    @model_validator(mode="after")
    def _parts_name_known_packages(self) -> PackageSource:
        for part in (part for parts in self.members.values() for part in parts):
            package, separator, path = part.partition(":")
            if package not in self.packages or not separator or not path:
                raise ValueError(f"{part!r} must be PACKAGE:PATH with one of {[*self.packages]}")
        return self


class HubSource(_Strict):
    """Files on a model hub, for machines that reach one.

    Attributes:
        hub: The repository there, `owner/name`.
        revision: A branch, tag or commit.
        members: File names there, where they differ from ours.
    """

    hub: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    revision: str = "main"
    members: dict[str, str] = {}


def _kind_of_source(value: Any) -> str | None:
    """Which kind of source this is: each has a key that no other has."""
    keys = value if isinstance(value, dict) else vars(value)
    return next((kind for kind in ("folder", "packages", "hub") if kind in keys), None)


Source = Annotated[
    Annotated[FolderSource, Tag("folder")]
    | Annotated[PackageSource, Tag("packages")]
    | Annotated[HubSource, Tag("hub")],
    Discriminator(
        _kind_of_source,
        custom_error_type="source",
        custom_error_message="a source has one of the keys folder, packages and hub",
    ),
]


class PreparerEntry(_Strict):
    """A conversion: the function `package.module:function`, and a number that grows with it."""

    function: str = Field(pattern=r"^[\w.]+:\w+$")
    version: int = 1


class ModelEntry(_Strict):
    """One model.

    Attributes:
        summary: What it is and does, in one line.
        licence: The licence of the weights, an SPDX expression.
        origin: Where the weights come from, for people.
        wanted_for: Occasions on which it is fetched without being named, like `serve` or `test`.
        files: What makes up the model, by file name.
        sources: Where the files are to be had, tried in this order.
        prepare: The preparer that makes the form which is loaded; None: loaded as it is.
    """

    summary: str
    licence: str
    origin: str
    wanted_for: frozenset[str] = frozenset()
    files: dict[str, ModelFile] = Field(min_length=1)
    sources: list[Source] = Field(min_length=1)
    prepare: str | None = None

    @field_validator("files")
    @classmethod
    def _names_stay_inside(cls, files: dict[str, ModelFile]) -> dict[str, ModelFile]:
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{name!r} must be a path below the model's folder")
        return files

    @model_validator(mode="after")
    def _is_complete(self) -> ModelEntry:
        fetched = [source for source in self.sources if not isinstance(source, FolderSource)]
        unpinned = [name for name, file in self.files.items() if file.sha256 is None]
        if fetched and unpinned:
            raise ValueError(f"{unpinned} need a sha256, since they come from elsewhere")
        for source in fetched:
            if isinstance(source, PackageSource) and source.members.keys() != self.files.keys():
                raise ValueError(f"the members of {[*source.packages]} must be {[*self.files]}")
        return self

    @property
    def size(self) -> int:
        """Bytes of all files together, as far as they are stated."""
        return sum(file.size or 0 for file in self.files.values())


class CatalogueFile(_Strict):
    """The whole of a catalogue file.

    Attributes:
        models: By name.
        preparers: By name.
        architectures: Classes which the pipelines need vLLM to know and to be able to inspect.
    """

    models: dict[str, ModelEntry] = {}
    preparers: dict[str, PreparerEntry] = {}
    architectures: list[str] = []

    @model_validator(mode="after")
    def _preparers_exist(self) -> CatalogueFile:
        for name, entry in self.models.items():
            if entry.prepare is not None and entry.prepare not in self.preparers:
                raise ValueError(f"{name} wants the preparer {entry.prepare!r}, which is not there")
        return self


def read_catalogue_file(path: Path) -> CatalogueFile:
    """Reads and checks a catalogue file.

    Raises:
        ConfigurationError: It cannot be read, or something in it is wrong.
    """
    try:
        return CatalogueFile.model_validate(yaml.safe_load(path.read_text("utf-8")) or {})
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"The catalogue {path} cannot be read: {error}") from error
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg']}"
            for item in error.errors()
        )
        raise ConfigurationError(f"The catalogue {path} is wrong: {problems}.") from error
