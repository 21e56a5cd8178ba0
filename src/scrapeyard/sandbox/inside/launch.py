"""Starts a zygote for an environment. A program, standard library only: `python -I -S launch.py SOCKET SDK_FOLDER`.

The interpreter runs without `site`: no `.pth` file, no `sitecustomize`, no package of an environment or of the platform
may run code here, outside every wall. Our own two packages are therefore loaded from their folders, not found on a
path; a script's packages are added to the path by its parent, inside its walls.
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
    """Import a package from its folder, whatever the path says. Its modules follow from there."""
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
