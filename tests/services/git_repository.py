"""A real Git repository that a test writes, and the bare one that it pushes to."""

import os
import shutil
import subprocess
from pathlib import Path

SCRIPT = "async def run(ctx, url: str):\n    return url\n"


_CONFIG = """[maintenance]
	auto = false
[core]
	repositoryformatversion = 0
"""
"""Git need not look after each commit whether there is something to clean up."""


class GitRepository:
    """`folder` is where its author works; `bare` is what the world sees after `push`."""

    def __init__(self, home: Path, name: str = "scrapers") -> None:
        self.folder = home / f"{name}-work"
        self.bare = home / f"{name}.git"
        _init(self.folder / ".git", _CONFIG)
        _init(self.bare, f"{_CONFIG}\tbare = true\n[http]\n\treceivepack = false\n[receive]\n\tautogc = false\n")

    @property
    def url(self) -> str:
        """As a file URL."""
        return f"file://{self.bare}"

    def git(self, *arguments: str, folder: Path | None = None, text: bytes | None = None) -> str:
        """Run git with nothing of the user's configuration; returns what it prints, without the last line end."""
        where = folder or self.folder
        done = subprocess.run(
            ["git", *arguments], cwd=where, env=environment(), input=text, capture_output=True, check=False
        )
        assert done.returncode == 0, f"git {arguments}: {done.stderr.decode()}"
        return done.stdout.decode().rstrip("\n")

    def write(self, path: str, text: str | bytes) -> None:
        """One file, with the folders above it."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def scraper(self, name: str, version: str, script: str = SCRIPT, folder: str | None = None) -> None:
        """A scraper's two files."""
        where = name if folder is None else folder
        self.write(f"{where}/scraper.toml", f'id = "{name}"\nversion = "{version}"\n')
        self.write(f"{where}/scraper.py", script)

    def remove(self, path: str) -> None:
        """A file or a folder with all in it."""
        found = self.folder / path
        shutil.rmtree(found) if found.is_dir() else found.unlink()

    def commit(self, *tags: str, branch: str = "main") -> str:
        """Everything as it stands, with these tags, pushed; returns the commit's id."""
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message=next")
        for tag in tags:
            self.git("tag", tag)
        self.push(branch)
        return self.git("rev-parse", "HEAD")

    def push(self, branch: str = "main") -> None:
        """Make the bare repository the same, whatever it had."""
        self.git(
            "push",
            "--quiet",
            "--force",
            "--prune",
            str(self.bare),
            f"HEAD:refs/heads/{branch}",
            "refs/tags/*:refs/tags/*",
        )

    def tree(self, entries: list[tuple[str, str, str]]) -> str:
        """A tree of (mode, id, name), as crooked as it may be; returns its id. Modes are written as they are."""
        raw = b"".join(
            f"{mode} {name}".encode("utf-8", "surrogateescape") + b"\0" + bytes.fromhex(object_id)
            for mode, object_id, name in entries
        )
        return self.git("hash-object", "--literally", "-t", "tree", "-w", "--stdin", text=raw)

    def blob(self, content: bytes) -> str:
        """A file's content; returns its id."""
        return self.git("hash-object", "-w", "--stdin", text=content)

    def commit_tree(self, tree: str, *, push: bool = True) -> str:
        """A commit of any tree on the branch; returns its id."""
        commit = self.git("commit-tree", tree, "-m", "made", text=b"")
        if push:
            self.git("push", "--quiet", "--force", str(self.bare), f"{commit}:refs/heads/main")
        return commit


def _init(folder: Path, config: str) -> None:
    """What `git init` makes, without starting it."""
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(config)


def environment() -> dict[str, str]:
    """For git as a test's author runs it."""
    person = {"NAME": "Author", "EMAIL": "author@shop.example", "DATE": "2026-01-01T00:00:00Z"}
    names = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in person.items()}
    return {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **names}
