"""Is a scraper ready to publish? Reads its files as the repository does, then reports what users would miss."""

import asyncio
import warnings
from pathlib import Path
from typing import Any

from scrapeyard.authoring.cases import case_folders
from scrapeyard.authoring.findings import Finding, fail, is_good, ok, warn
from scrapeyard.authoring.imports import check_imports
from scrapeyard.authoring.runner import Runner
from scrapeyard.authoring.testing import offline
from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import Environment, Limits, Scraper
from scrapeyard.repository.archive.files import SourceFile, scraper_files
from scrapeyard.repository.manifest.manifest import FILE_NAME, Manifest, read_manifest
from scrapeyard.repository.manifest.semver import is_prerelease
from scrapeyard.repository.manifest.signature import MAX_BYTES, read_signature

MAX_WARNINGS = 20


def check_files(folder: Path, ceiling: Limits) -> tuple[Manifest | None, list[Finding]]:
    """The checks that run no code; the manifest is None if it cannot be read. Blocking."""
    try:
        files = scraper_files(folder, folder.resolve(), str(folder))
    except (ScraperInvalid, OSError) as error:
        return None, [fail("files", _words(error))]
    found = [ok("files", f"{len(files)} files, {sum(file.size for file in files)} bytes")]
    manifest = _manifest(folder, found)
    found += _compiled(files, folder)
    if manifest is None:
        return None, found
    found += _script(manifest, folder)
    found += [*_texts(manifest), *_reach(manifest), *_limits(manifest, ceiling), *_cases(folder)]
    found += check_imports(manifest, files)
    return manifest, found


async def check_loading(runner: Runner, folder: Path) -> tuple[Scraper | None, list[Finding]]:
    """Load it inside its walls, as a worker would; the scraper is None when it cannot be read."""
    try:
        scraper = offline(runner.load(folder))
    except ScraperInvalid as error:
        return None, [fail("loads", error.message)]
    try:
        environment = await runner.install_packages(scraper)
    except ScraperInvalid as error:
        return scraper, [fail("requirements", error.message, "correct `requirements`, or ask where packages come from")]
    except SourceUnavailable as error:
        return scraper, [fail("requirements", error.message, "try again when the package index answers")]
    try:
        await runner.load_script(scraper)
    except ScraperInvalid as error:
        return scraper, [fail("loads", error.message, "mend what the script does at its top level")]
    loads = ok("loads", "inside the walls of a worker")
    return scraper, [loads, *(await asyncio.to_thread(_installed_imports, folder, environment))]


async def validate(runner: Runner | None, folder: Path, ceiling: Limits) -> list[Finding]:
    """All findings for the scraper in a folder. Without a runner its script is not loaded."""
    _, found = check_files(folder, ceiling)
    if runner is not None and is_good(found):
        found += (await check_loading(runner, folder))[1]
    return found


def _installed_imports(folder: Path, environment: Environment | None) -> list[Finding]:
    """What a scraper with requirements imports beyond them; it may do so only when it runs."""
    manifest = _manifest(folder, [])
    if environment is None or manifest is None:
        return []
    return check_imports(manifest, scraper_files(folder, folder.resolve(), str(folder)), environment.packages)


def _manifest(folder: Path, found: list[Finding]) -> Manifest | None:
    path = folder / FILE_NAME
    try:
        manifest = read_manifest(path.read_bytes(), str(path), lambda name: (folder / name).read_bytes())
    except (ScraperInvalid, OSError) as error:
        found.append(fail("manifest", _words(error)))
        return None
    found.append(ok("manifest", f"{manifest.id} {manifest.version}"))
    return manifest


def _compiled(files: tuple[SourceFile, ...], folder: Path) -> list[Finding]:
    scripts = [file for file in files if file.name.endswith(".py")]
    found = [finding for file in scripts for finding in _compile(file, f"{folder}/{file.name}")]
    return found if found else [ok("compiles", f"{len(scripts)} Python file{'s' * (len(scripts) != 1)}")]


def _compile(file: SourceFile, where: str) -> list[Finding]:
    """Compile without executing. Also reports Python's own warnings, such as an invalid escape."""
    if file.size > MAX_BYTES:
        return [fail("compiles", f"{where}: larger than {MAX_BYTES // 1024} KB", "split it into modules")]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            compile(file.path.read_bytes(), where, "exec", dont_inherit=True)
        except SyntaxError as error:
            return [fail("compiles", f"{where}:{error.lineno or 1}: {error.msg}")]
        except (ValueError, RecursionError, MemoryError, OSError) as error:
            return [fail("compiles", f"{where}: {error or 'too complex'}")]
    return [
        warn("compiles", f"{where}:{each.lineno}: {each.message}", "correct it; a later Python will refuse it")
        for each in heard[:MAX_WARNINGS]
    ]


def _script(manifest: Manifest, folder: Path) -> list[Finding]:
    where = f"{folder}/{manifest.entry_file}"
    try:
        taken = read_signature(
            (folder / manifest.entry_file).read_bytes()[: MAX_BYTES + 1],
            manifest.entry_function,
            where,
            may_be_imported=manifest.input_schema is not None,
        )
    except (ScraperInvalid, OSError) as error:
        return [fail("entry", _words(error))]
    found = _hints(taken, manifest.entry_function) if manifest.input_schema is None else _agree(taken, manifest)
    return found or [ok("entry", f"{manifest.entry} takes {', '.join(taken.get('properties', {})) or 'any object'}")]


def _hints(taken: dict[str, Any], function: str) -> list[Finding]:
    bare = [name for name, schema in taken.get("properties", {}).items() if not schema.keys() - {"default"}]
    if bare:
        detail = f"{function} takes {', '.join(bare)} without a type hint: anything is accepted"
        return [warn("input", detail, "add hints that JSON knows, or an [input] schema")]
    if "properties" not in taken:
        return [warn("input", f"{function} takes any object", "name its parameters, or add an [input] schema")]
    return []


def _agree(taken: dict[str, Any], manifest: Manifest) -> list[Finding]:
    """Check that the function accepts every input that the schema allows."""
    schema, parameters = manifest.input_schema or {}, taken.get("properties", {})
    declared = schema.get("properties")
    if not parameters or not isinstance(declared, dict):
        return []
    strange = sorted(declared.keys() - parameters.keys()) if taken.get("additionalProperties") is False else []
    required = schema.get("required")
    lacking = sorted(set(taken.get("required", ())) - set(required if isinstance(required, list) else ()))
    found = []
    if strange:
        detail = f"[input] has {', '.join(strange)}, which {manifest.entry_function} does not take"
        found.append(fail("input", detail, "add the parameter, or remove it from [input]"))
    if lacking:
        detail = f"{manifest.entry_function} needs {', '.join(lacking)}, which [input] does not require"
        found.append(warn("input", detail, "add it to `required`, or give the parameter a default"))
    return found


def _texts(manifest: Manifest) -> list[Finding]:
    found = []
    if not manifest.description.strip():
        found.append(warn("description", "none", "say in one sentence what it gets: `description` in the manifest"))
    if manifest.output_schema is None:
        found.append(warn("output", "no schema: any result is good", "describe the result: [output] in the manifest"))
    if is_prerelease(manifest.version):
        detail = f"{manifest.version} comes before a release: only calls that name it, or `beta`, get it"
        found.append(warn("version", detail, "drop what follows the hyphen when it is ready"))
    return found


def _reach(manifest: Manifest) -> list[Finding]:
    found = []
    if not manifest.allowed_hosts:
        found.append(warn("hosts", "it may fetch from any host", "name the site's: allowed_hosts in the manifest"))
    if manifest.network == "direct":
        detail = 'network = "direct": it runs only where an operator grants it, and its own traffic is not recorded'
        found.append(warn("network", detail, "use ctx.fetch if you can"))
    return found


def _limits(manifest: Manifest, ceiling: Limits) -> list[Finding]:
    over = [
        f"{name} {getattr(manifest.limits, name):g} → {getattr(ceiling, name):g}"
        for name in Limits.__struct_fields__
        if getattr(manifest.limits, name) > getattr(ceiling, name)
    ]
    if over:
        return [
            warn("limits", f"cut to this installation's ceiling: {', '.join(over)}", "ask for less, or the operator")
        ]
    return [ok("limits", "within this installation's ceiling")]


def _cases(folder: Path) -> list[Finding]:
    try:
        count = len(case_folders(folder))
    except (ScraperInvalid, OSError) as error:
        return [fail("tests", _words(error))]
    if not count:
        return [warn("tests", "no recorded case", "`scrapeyard record` makes one")]
    return [ok("tests", f"{count} recorded case{'s' * (count != 1)}")]


def _words(error: Exception) -> str:
    if isinstance(error, ScraperInvalid):
        return error.message
    if isinstance(error, OSError):
        return f"{error.filename}: cannot be read: {error.strerror}"
    return str(error)
