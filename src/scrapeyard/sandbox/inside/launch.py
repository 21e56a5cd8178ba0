"""Starts a zygote for an environment. A program, standard library only: `python -I -S launch.py SOCKET SDK_FOLDER`.

The interpreter runs without `site`, because this process is outside every wall: no `.pth` file, `sitecustomize` or
third-party package may run code here. Our own two packages are therefore loaded from their folders, not from the path.
The parent adds a script's packages to the path later, inside its walls.
"""

import importlib.util
import os
import sys


def main() -> None:
    """Make our packages importable, then be the zygote."""
    package("scrapeyard", os.path.dirname(os.path.dirname(os.path.dirname(__file__))))  # noqa: PTH120 - before pathlib is warm
    package("scrapeyard_sdk", sys.argv[2])
    from scrapeyard.sandbox.inside.zygote import main as be_zygote  # noqa: PLC0415 - not importable before

    be_zygote()


def package(name: str, folder: str) -> None:
    """Import a package from its folder instead of the path. Its modules are then found there too."""
    spec = importlib.util.spec_from_file_location(
        name,
        os.path.join(folder, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[folder],
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is not in {folder}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main()
