"""Finds a model package and reads all its cards, in place.

Cards come from ``models.json`` at the root and, one level deep, from ``scripts/<dir>/models.json`` or
``scripts/<dir>/get_models_json.py``. What is broken is named and does not hide the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from madengine.catalog.card import ModelCard
from madengine.catalog.problems import CardProblem
from madengine.catalog.reading import CardFile, hide_duplicates, read_cards
from madengine.catalog.rules import shown, unshowable
from madengine.core.errors import DiscoveryError, MADEngineError

if TYPE_CHECKING:
    from madengine.catalog.dynamic import Generated, ScriptRunner

FILE_NAME = "models.json"
SCRIPT_NAME = "get_models_json.py"
FOLDER_VARIABLE = "MODEL_DIR"
_LINES_SHOWN = 200  # problems of one file that get a line number; finding one costs a pass over the text
_HOW_TO_POINT = f"go to the folder of a model package, or set {FOLDER_VARIABLE} to it"


@dataclass(frozen=True)
class Catalog:
    """All cards of a package, in the order root, then folders by name, and what is wrong with the others.

    ``updatable`` are the full names of generated cards that want a call of ``update_model()`` when they are selected;
    ``scripts`` makes those calls.
    """

    root: Path
    cards: tuple[ModelCard, ...]
    problems: tuple[CardProblem, ...] = ()
    updatable: frozenset[str] = frozenset()
    scripts: ScriptRunner | None = None


def package_root(argument: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> Path:
    """The absolute folder of the package: the argument, else ``MODEL_DIR``, else the current directory.

    Raises DiscoveryError when it is no folder.
    """
    given = argument or environment.get(FOLDER_VARIABLE) or None
    folder = Path.cwd() if given is None else Path(given).absolute()
    if not _is_folder(folder):
        origin = "" if argument or given is None else f"{FOLDER_VARIABLE} is set to it; "
        raise DiscoveryError(f"there is no folder {shown(str(folder), 400)}", hint=origin + _HOW_TO_POINT)
    return folder


def discover(package: Path, *, environment: Mapping[str, str] | None = None) -> Catalog:
    """Every card of ``package``. Nothing is written there.

    ``environment`` (default: this process's) is what generating scripts inherit; its ``MAD_DISCOVERY_TIMEOUT`` is
    their time limit in seconds. Raises DiscoveryError when the folder holds nothing that belongs to a package.
    """
    written, generating, problems = _sources(package)
    runner = _runner(package, os.environ if environment is None else environment) if generating else None
    generated = _generate([source.path for source in generating], runner) if runner else {}
    cards: list[ModelCard] = []
    updatable: set[str] = set()
    for source in sorted([*written, *generating], key=lambda source: source.scope):
        outcome = generated.get(source.path)
        found, faults = _read_file(source) if outcome is None else _take(source, outcome, updatable)
        cards += found
        problems += faults
    if not cards and not problems:
        raise _nothing_found(package, [*written, *generating])
    kept, duplicates = hide_duplicates(cards)
    return Catalog(package, kept, (*problems, *duplicates), frozenset(updatable), runner)


def _nothing_found(package: Path, empty: Sequence[CardFile]) -> DiscoveryError:
    looked = f"{FILE_NAME}, scripts/*/{FILE_NAME} and scripts/*/{SCRIPT_NAME}"
    if empty:
        files = ", ".join(str(source.path.relative_to(package)) for source in empty[:5])
        return DiscoveryError(
            f"the package {shown(str(package), 400)} has no models: {files} {'is' if len(empty) == 1 else 'are'} empty "
            f"(looked for {looked})",
            hint=_HOW_TO_POINT,
        )
    return DiscoveryError(
        f"{shown(str(package), 400)} is no model package: none of {looked} is there", hint=_HOW_TO_POINT
    )


def _runner(package: Path, environment: Mapping[str, str]) -> ScriptRunner:
    from madengine.catalog.dynamic import ScriptRunner

    return ScriptRunner.from_environment(package, environment)


def _sources(package: Path) -> tuple[list[CardFile], list[CardFile], list[CardProblem]]:
    """The files with written cards, the scripts that generate cards, and the folders that are unusable."""
    written: list[CardFile] = []
    generating: list[CardFile] = []
    problems: list[CardProblem] = []
    root = CardFile(package / FILE_NAME)
    if os.path.lexists(root.path):
        written.append(root)
    for folder in _folders(package / "scripts", problems):
        cards, script = CardFile(folder / FILE_NAME, folder.name), CardFile(folder / SCRIPT_NAME, folder.name)
        has_cards, has_script = os.path.lexists(cards.path), os.path.lexists(script.path)
        if not (has_cards or has_script):
            continue
        if unshowable(folder.name):
            problems.append(replace(cards, path=folder).problem("the folder's name holds control characters"))
        elif has_cards and has_script:
            problems.append(
                replace(cards, path=folder).problem(
                    f"the folder holds both {FILE_NAME} and {SCRIPT_NAME}", hint="keep one of them"
                )
            )
        else:
            (written if has_cards else generating).append(cards if has_cards else script)
    return written, generating, problems


def _folders(scripts: Path, problems: list[CardProblem]) -> list[Path]:
    try:
        with os.scandir(scripts) as entries:
            return [scripts / name for name in sorted(entry.name for entry in entries if entry.is_dir())]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(CardFile(scripts).problem(f"the folder cannot be read: {error.strerror}"))
        return []


def _read_file(source: CardFile) -> tuple[list[ModelCard], list[CardProblem]]:
    from madengine.core.documents import parse_json, read_text

    try:
        text = read_text(source.path, what="model cards")
        documents = parse_json(text, source=str(source.path), what="model cards")
    except MADEngineError as error:
        return [], [_file_problem(source, error)]
    cards, problems = read_cards(documents, source)
    return cards, _with_lines(problems, text) if problems else []


def _file_problem(source: CardFile, error: MADEngineError) -> CardProblem:
    """An error about a file as a problem; what its place adds to the path is kept."""
    position = (error.where or "").removeprefix(str(source.path))
    return replace(source.problem(error.message, hint=error.hint), position=position if position[:1] == ":" else "")


def _with_lines(problems: Sequence[CardProblem], text: str) -> list[CardProblem]:
    from madengine.core.json_positions import lines_of

    lines = lines_of(text, [problem.pointer for problem in problems[:_LINES_SHOWN]])
    return [replace(problem, line=lines.get(problem.pointer, problem.line)) for problem in problems]


def _generate(scripts: Sequence[Path], runner: ScriptRunner) -> dict[Path, Generated | DiscoveryError]:
    """The answers of all scripts; they run side by side, so that several slow ones cost the time of one."""
    import threading
    from concurrent.futures import ThreadPoolExecutor

    cancel = threading.Event()

    def attempt(script: Path) -> Generated | DiscoveryError:
        try:
            return runner.list_models(script, cancel=cancel)
        except DiscoveryError as error:
            return error

    with ThreadPoolExecutor(max_workers=8) as pool:
        try:
            return dict(zip(scripts, pool.map(attempt, scripts), strict=True))
        except BaseException:
            cancel.set()
            raise


def _take(
    source: CardFile, outcome: Generated | DiscoveryError, updatable: set[str]
) -> tuple[list[ModelCard], list[CardProblem]]:
    if isinstance(outcome, DiscoveryError):
        return [], [source.problem(outcome.message, hint=outcome.hint)]
    updatable.update(f"{source.scope}/{name}" for name in outcome.updatable)
    return read_cards(outcome.documents, source)


def load_updated(catalog: Catalog, cards: Sequence[ModelCard]) -> tuple[dict[str, ModelCard], list[CardProblem]]:
    """Full name -> card after ``update_model()``, for those of ``cards`` that want the call, and what went wrong.

    Remarks were made when the cards were listed, and are not made again.
    """
    updated: dict[str, ModelCard] = {}
    problems: list[CardProblem] = []
    for source, names in _by_script(catalog, cards).items():
        if catalog.scripts is None:
            raise ValueError("a catalog with updatable cards has a runner for their scripts")
        try:
            outcome = catalog.scripts.update_models(source.path, names)
        except DiscoveryError as error:
            problems.append(source.problem(error.message, hint=error.hint))
            continue
        fresh, faults = read_cards(outcome.documents, source)
        updated.update((card.name, card) for card in fresh)
        errors = [fault for fault in faults if fault.is_error]
        problems += [replace(fault, message=f"after update_model(), {fault.message}") for fault in errors]
    return updated, problems


def _by_script(catalog: Catalog, cards: Sequence[ModelCard]) -> dict[CardFile, list[str]]:
    found: dict[CardFile, list[str]] = {}
    for name, card in {card.name: card for card in cards if card.name in catalog.updatable}.items():
        if card.origin is not None:
            source = CardFile(card.origin.file, card.scope)
            found.setdefault(source, []).append(name.removeprefix(f"{card.scope}/"))
    return found


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
