"""Lists the scrapers in the modules of an installed package. A separate program that imports them and exits.

    python -I -m scrapeyard_sdk.discover '{"search": [], "entries": ["shop_scrapers.products"]}'

prints one line of JSON for each entry as soon as it is known: {"entry", "found": [{"module", "function", "validates",
"told"}]} or {"entry", "error"}. Output of the package itself is discarded.
"""

import importlib
import json
import os
import sys
from typing import Any

from scrapeyard_sdk.registry import ATTRIBUTE
from scrapeyard_sdk.text import clean

MAX_ERROR = 500


def main() -> None:
    """Read the argument, import every entry, print what was found."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    asked = json.loads(sys.argv[1])
    sys.path[:0] = asked["search"]
    sys.dont_write_bytecode = True
    for entry in asked["entries"]:
        answers.write(_line({"entry": entry, **_look(entry)}, entry) + "\n")
        answers.flush()
    os._exit(0)


def _line(answer: dict[str, Any], entry: str) -> str:
    try:
        return json.dumps(answer, allow_nan=False, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"@scraper was told what is not JSON: {type(error).__name__}: {error}"
        return json.dumps({"entry": entry, "error": clean(problem)[:MAX_ERROR]})


def _look(entry: str) -> dict[str, Any]:
    try:
        module_name, _, function_name = entry.partition(":")
        module = importlib.import_module(module_name)
        if function_name:
            functions = [getattr(module, function_name)]
        else:
            functions = [
                value
                for value in vars(module).values()
                if getattr(value, "__module__", None) == module_name and _told(value) is not None
            ]
        return {"found": [_describe(function) for function in functions]}
    except BaseException as error:  # noqa: BLE001 - whatever a package does while it loads is its fault, SystemExit too
        return {"error": f"{type(error).__name__}: {clean(str(error))}"[:MAX_ERROR]}


def _told(value: object) -> Any:
    """The decorator's stored arguments; None for anything else, such as an object with every attribute."""
    return getattr(value, "__dict__", {}).get(ATTRIBUTE) if callable(value) else None


def _describe(function: Any) -> dict[str, Any]:
    told = _told(function)
    if told is None:
        raise TypeError(f"{getattr(function, '__name__', 'it')} has no @scraper(…) or @registry.register(…)")
    name: str = function.__name__
    module = sys.modules[function.__module__]
    if getattr(module, name, None) is not function:
        raise TypeError(f"{name} does not stand at the top level of {module.__name__}")
    return {
        "module": module.__name__,
        "function": name,
        "validates": callable(getattr(module, "validate_result", None)),
        "told": told,
    }


if __name__ == "__main__":
    main()
