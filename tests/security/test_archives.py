"""Archives that an enemy packed: refused with the member's name, nothing outside, nothing beyond the limits."""

import gzip
import hashlib
import io
import os
import struct
import tarfile
import tempfile
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.archive import files
from scrapeyard.repository.archive.archives import MAX_ARCHIVE_BYTES, pack, unpack
from scrapeyard.repository.archive.files import MAX_BYTES, MAX_DEPTH, MAX_FILES, SourceFile, list_files
from scrapeyard.repository.archive.members import MAX_MEMBERS

pytestmark = pytest.mark.security

MANIFEST = b'id = "shop/product"\nversion = "1.0.0"\n'
GOOD = {"scraper.toml": MANIFEST, "scraper.py": b"def run(ctx):\n    return 1\n", "parts/table.csv": b"a,b\n" * 100}


def member(name: str, content: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry, content


def tar(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=form) as archive:
        for entry, content in members:
            archive.addfile(entry, io.BytesIO(content))
    return into.getvalue()


def good_tar() -> bytes:
    return tar(*(member(name, content) for name, content in GOOD.items()))


def zipped(members: dict[str, bytes] | None = None, how: int = zipfile.ZIP_DEFLATED) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", how) as archive:
        for name, content in (GOOD if members is None else members).items():
            archive.writestr(zipfile.ZipInfo(name), content, how)
    return into.getvalue()


def opened(data: bytes, name: str, folder: Path) -> dict[str, bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    unpack(io.BytesIO(data), name, folder)
    return everything(folder)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(data: bytes, name: str, folder: Path) -> str:
    """Why; and nothing but plain files and folders was written, inside, within the limits."""
    outside = set(folder.parent.rglob("*"))
    folder.mkdir()
    with pytest.raises(ScraperInvalid) as told:
        unpack(io.BytesIO(data), name, folder)
    check_inside(folder)
    assert {path for path in folder.parent.rglob("*") if folder not in path.parents and path != folder} == outside
    assert told.value.message.startswith(f"{name}: ")
    assert told.value.message.isprintable()
    assert len(told.value.message) < 600
    return told.value.message


def check_inside(folder: Path) -> None:
    found = list(folder.rglob("*"))
    assert all(path.is_dir() or path.is_file() for path in found)
    assert not any(path.is_symlink() for path in found)
    assert sum(path.stat().st_size for path in found if path.is_file()) <= MAX_BYTES
    assert sum(path.is_file() for path in found) <= MAX_FILES


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """Gives the most memory that was held at once inside the block."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "into"


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "a.tar", "a.zip"])
def test_good_archives_open(into: Path, name: str) -> None:
    data = zipped() if name.endswith("zip") else good_tar()
    assert opened(gzip.compress(data) if name.endswith("gz") else data, name, into) == GOOD


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_dialect_of_tar_opens_with_long_names(into: Path, form: int) -> None:
    name = "/".join(["a" * 40] * 5) if form == tarfile.USTAR_FORMAT else "/".join(["한국어" + "b" * 90] * 3)
    assert opened(tar(member(name), member("scraper.toml"), form=form), "a.tar", into).keys() == {name, "scraper.toml"}


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_one_folder_around_everything_is_left_out(into: Path, kind: str) -> None:
    wrapped = {f"product-1.0.0/{name}": content for name, content in GOOD.items()}
    wrapped["product-1.0.0/product-1.0.0/again.txt"] = b"x"
    data = zipped(wrapped) if kind == "zip" else tar(*(member(name, content) for name, content in wrapped.items()))
    assert opened(data, f"a.{kind}", into) == GOOD | {"product-1.0.0/again.txt": b"x"}


def test_a_tar_of_the_folder_itself_opens(into: Path) -> None:
    folder = member(".", b"", type=tarfile.DIRTYPE)
    rest = (member(f"./{name}", content) for name, content in GOOD.items())
    assert opened(tar(folder, *rest), "a.tar", into) == GOOD


def test_a_git_archive_opens(into: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "0" * 40}) as archive:
        for name, content in GOOD.items():
            entry, _ = member(f"repository-1/{name}", content, mtime=1700000000.5)
            archive.addfile(entry, io.BytesIO(content))
    assert opened(data.getvalue(), "a.tar", into) == GOOD


BAD_NAMES = {
    "/etc/passwd": "plain path",
    "../outside": "plain path",
    "a/../../outside": "plain path",
    "a/./b": "plain path",
    "a//b": "plain path",
    "a\\b": "Windows",
    "..\\outside": "Windows",
    "C:/windows": "Windows",
    "C:boot": "Windows",
    "new\nline": "printed",
    "bell\a": "printed",
    "escape\x1b[31m": "printed",
    "right\u202eleft": "printed",
    "n" * 256: "longer",
    "/".join(["d" * 200] * 6): "longer",
    "/".join(["d"] * (MAX_DEPTH + 3)): "deeper",
}


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name[:20]))
@pytest.mark.parametrize("kind", ["tar", "tar-folder", "zip"])
def test_names_that_lead_elsewhere(into: Path, name: str, kind: str) -> None:
    if kind == "zip":
        data = zipped({"scraper.toml": MANIFEST, name: b"x"})
    else:
        entry = member(name, b"", type=tarfile.DIRTYPE) if kind == "tar-folder" else member(name)
        data = tar(member("scraper.toml"), entry)
    assert BAD_NAMES[name] in refused(data, f"a.{kind[:3]}", into)


def test_a_name_with_a_nul_in_a_zip(into: Path) -> None:
    data = zipped({"scraper.toml": MANIFEST, "saXe.py": b"x"}).replace(b"saXe.py", b"sa\0e.py")
    assert "printed" in refused(data, "a.zip", into)


def test_names_that_are_not_unicode(into: Path) -> None:
    data = tar(member("caf\udce9", b"x"), form=tarfile.GNU_FORMAT)
    assert "printed" in refused(data, "a.tar", into)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.LNKTYPE, "hard link"),
        (tarfile.CHRTYPE, "device"),
        (tarfile.BLKTYPE, "device"),
        (tarfile.FIFOTYPE, "pipe"),
        (tarfile.CONTTYPE, "unknown"),
        (b"V", "unknown"),
    ],
)
def test_only_files_and_folders_of_a_tar(into: Path, kind: bytes, words: str) -> None:
    entry, _ = member("evil.py", b"", type=kind, linkname="/etc/passwd")
    message = refused(tar(member("scraper.toml"), (entry, b"")), "a.tar", into)
    assert words in message
    assert "evil.py" in message


def test_a_link_and_then_a_file_through_it(into: Path) -> None:
    link, _ = member("parts", b"", type=tarfile.SYMTYPE, linkname="..")
    assert "symbolic link" in refused(tar((link, b""), member("parts/outside")), "a.tar", into)


def test_sparse_files(into: Path) -> None:
    header = member("hole.bin", b"")[0].tobuf(tarfile.GNU_FORMAT)
    block = bytearray(header)
    block[156:157] = tarfile.GNUTYPE_SPARSE
    block[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(block))[0]
    assert "sparse" in refused(bytes(block) + b"\0" * 1024, "a.tar", into)
    entry, content = member("hole.bin", b"x")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(10**15)}
    assert "sparse" in refused(tar((entry, content)), "b.tar", into.with_name("other"))


@pytest.mark.parametrize("mode", [0o120777, 0o020666, 0o060666, 0o010666, 0o140666])
def test_only_files_and_folders_of_a_zip(into: Path, mode: int) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        entry = zipfile.ZipInfo("evil.py")
        entry.create_system, entry.external_attr = 3, mode << 16
        archive.writestr(entry, "/etc/passwd")
    assert "link or a device" in refused(data.getvalue(), "a.zip", into)


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a.py", "a.py"], "twice"),
        (["a", "a/b.py"], "which is a file"),
        (["a/b.py", "a"], "both a file and a folder"),
        (["a/", "a"], "both a file and a folder"),
        (["a", "a/"], "both a file and a folder"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_collide(into: Path, kind: str, names: list[str], words: str) -> None:
    if kind == "tar":
        kinds = [tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE for name in names]
        data = tar(*(member(name, b"", type=kind) for name, kind in zip(names, kinds, strict=True)))
    else:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name in names:
                archive.writestr(zipfile.ZipInfo(name), b"")
        data = stream.getvalue()
    assert words in refused(data, f"a.{kind}", into)


def zeros(count: int) -> Iterator[bytes]:
    yield from (b"\0" * min(1 << 20, count - at) for at in range(0, count, 1 << 20))


def tar_bomb(sizes: list[int]) -> Iterator[bytes]:
    for number, size in enumerate(sizes):
        yield member(f"bomb{number}.bin", b"")[0].tobuf() if not size else header(f"bomb{number}.bin", size)
        yield from zeros(size + -size % 512)
    yield b"\0" * 1024


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


def squeezed(pieces: Iterator[bytes]) -> bytes:
    stream = zlib.compressobj(1, wbits=31)
    return b"".join([*(stream.compress(piece) for piece in pieces), stream.flush()])


@pytest.mark.parametrize(
    "sizes",
    [[MAX_BYTES + 1], [300 << 20], [MAX_BYTES // 2, MAX_BYTES // 2, 1], [8 << 40], [1] * (MAX_FILES + 1)],
    ids=["a byte too much", "one large", "several", "a lie of 8 TB", "too many"],
)
def test_a_tar_bomb_is_stopped_early(into: Path, sizes: list[int]) -> None:
    data = squeezed(tar_bomb(sizes) if sizes[0] < 1 << 40 else iter([header("bomb", sizes[0])]))
    began = time.process_time()
    message = refused(data, "a.tar.gz", into)
    assert time.process_time() - began < 10
    assert "MB" in message or f"{MAX_FILES} files" in message


def test_zeros_without_end_after_a_tar(into: Path) -> None:
    data = squeezed(iter([good_tar(), *zeros(200 << 20)]))
    began = time.process_time()
    assert "MB" in refused(data, "a.tar.gz", into)
    assert time.process_time() - began < 10


def test_headers_that_extend_without_end(into: Path) -> None:
    bombs = {
        "large": header("x", 40 << 20, tarfile.XHDTYPE),
        "long name": header("x", 40 << 20, tarfile.GNUTYPE_LONGNAME),
        "empty": header("x", 0, tarfile.XHDTYPE),
        "negative": header("x", -1, tarfile.GNUTYPE_LONGNAME),
    }
    for name, block in bombs.items():
        data = squeezed(iter([block, *zeros(41 << 20)]))
        with traced() as peak:
            assert "is a header of" in refused(data, "a.tar.gz", into.with_name(name))
            assert peak() < 8 << 20
    many = (header("x", 8, tarfile.XHDTYPE) + b"8 a=bcd\n" + b"\0" * 504) * (3 * MAX_MEMBERS + 1)
    assert "headers" in refused(squeezed(iter([many])), "a.tar.gz", into)


@pytest.mark.parametrize(
    "record",
    [
        b"8 a=bcde",
        b"0 a=bcd\n",
        b"99 a=bc\n",
        b"-8 a=bc\n",
        b"x a=bcd\n",
        b"8 abcde\n",
        b" 8 a=bc\n",
        b"9999999 a=b\n",
        b"\0" * 8,
    ],
)
def test_extended_headers_that_cannot_be_read(into: Path, record: bytes) -> None:
    data = header("x", len(record), tarfile.XHDTYPE) + record.ljust(512, b"\0") + good_tar()
    assert "extended header" in refused(data, "a.tar", into)


@pytest.mark.parametrize("record", [b"13 size=1000\n", b"20 path=../outside\n", b"20 path=/etc/passwd\n"])
def test_extended_headers_that_lie(into: Path, record: bytes) -> None:
    record = b"%d%s" % (len(record), record[2:])
    data = header("x", len(record), tarfile.XHDTYPE) + record.ljust(512, b"\0") + tar(member("good.py"))
    refused(data, "a.tar", into)
    data = header("x", len(record), tarfile.XGLTYPE) + record.ljust(512, b"\0") + tar(member("good.py"))
    refused(data, "b.tar", into.with_name("other"))


def test_a_zip_bomb_is_stopped_early(into: Path) -> None:
    data = zipped({"bomb.bin": b"\0" * (MAX_BYTES + 1)})
    assert "larger than" in refused(data, "a.zip", into)
    lie = data.replace(struct.pack("<L", MAX_BYTES + 1), struct.pack("<L", 1000))
    refused(lie, "b.zip", into.with_name("lie"))
    several = zipped({f"bomb{number}.bin": b"\0" * (MAX_BYTES // 2 + 1) for number in range(3)})
    assert "MB" in refused(several, "c.zip", into.with_name("several"))


def test_members_of_a_zip_that_share_bytes(into: Path) -> None:
    kernel = zipped({"a.bin": b"\0" * 1_000_000})
    directory = kernel.index(b"PK\x01\x02")
    end = kernel.index(b"PK\x05\x06")
    entries = b"".join(kernel[directory:end].replace(b"a.bin", b"%c.bin" % letter) for letter in b"abcdefgh")
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 8, 8, len(entries), directory, 0)
    assert "overlaps" in refused(kernel[:directory] + entries + tail, "a.zip", into)


def test_a_directory_of_millions_is_not_read(into: Path) -> None:
    entry = zipped({"a": b""})
    one = entry[entry.index(b"PK\x01\x02") : entry.index(b"PK\x05\x06")]
    entries = one * 1_000_000
    data = entries + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 5, 5, len(entries), 0, 0)
    with traced() as peak:
        assert "members" in refused(data, "a.zip", into)
        assert peak() < 8 << 20


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


def test_a_zip_that_lies_about_sizes_flags_or_places(into: Path) -> None:
    good = zipped(how=zipfile.ZIP_STORED)
    central, end = good.index(b"PK\x01\x02"), good.index(b"PK\x05\x06")
    lies = {
        "encrypted": patched(good, central + 8, "<H", 1),
        "method": patched(good, central + 10, "<H", 12),
        "crc": patched(good, central + 16, "<L", 1),
        "packed size": patched(good, central + 20, "<L", 5),
        "huge packed size": patched(good, central + 20, "<L", 0xFFFFFFFE),
        "size": patched(good, central + 24, "<L", 5),
        "64-bit size": patched(good, central + 24, "<L", 0xFFFFFFFF),
        "offset": patched(good, central + 42, "<L", 7),
        "64-bit offset": patched(good, central + 42, "<L", 0xFFFFFFFF),
        "name length": patched(good, central + 28, "<H", 60000),
        "disk": patched(good, end + 4, "<H", 3),
        "count": patched(good, end + 8, "<H", 2),
        "64-bit count": patched(patched(good, end + 8, "<H", 0xFFFF), end + 10, "<H", 0xFFFF),
        "directory size": patched(good, end + 12, "<L", 1),
        "directory place": patched(good, end + 16, "<L", 0),
        "comment": patched(good, end + 20, "<H", 9),
        "in front": b"#!/bin/sh\n" + good,
        "behind": good + b"more",
        "empty": b"",
        "no zip": b"PK" * 100,
    }
    for name, data in lies.items():
        assert refused(data, "a.zip", into.with_name(name)), name


def cuts(data: bytes) -> list[int]:
    return sorted({0, 1, 10, len(data) - 1, *range(0, len(data), max(1, len(data) // 60))})


def test_half_an_archive(into: Path) -> None:
    whole = {"a.tar": good_tar()[: 512 * 8], "a.tar.gz": gzip.compress(good_tar()), "a.zip": zipped()}
    assert opened(whole["a.tar"] + b"\0" * 1024, "a.tar", into.with_name("whole")) == GOOD
    for name, data in whole.items():
        for cut in cuts(data):
            place = into.with_name(f"{name}-{cut}")
            place.mkdir()
            refused(data[:cut], name, place / "into")


def test_something_after_the_end(into: Path) -> None:
    packed = gzip.compress(good_tar())
    for number, data in enumerate([packed + b"x", packed + packed, packed + b"\0"]):
        assert "after its end" in refused(data, "a.tar.gz", into.with_name(str(number)))
    assert "after its end" in refused(good_tar() + b"x" * 512, "a.tar", into.with_name("tar"))
    assert "after its end" in refused(good_tar() + good_tar(), "a.tar", into.with_name("two"))


def test_an_archive_that_is_too_large_or_of_another_kind(into: Path, tmp_path: Path) -> None:
    with (tmp_path / "large").open("w+b") as stream:
        stream.truncate(MAX_ARCHIVE_BYTES + 1)
        into.mkdir()
        with pytest.raises(ScraperInvalid, match="larger than 100 MB"):
            unpack(stream, "a.tar", into)
    with pytest.raises(ScraperInvalid, match="not an archive"):
        unpack(io.BytesIO(b""), "a.rar", into)


def test_too_many_members_that_are_no_files(into: Path) -> None:
    data = squeezed(header(f"d{number % 10}", 0, tarfile.DIRTYPE) for number in range(MAX_MEMBERS + 1))
    assert "members" in refused(data, "a.tar.gz", into)


TAKEN = {"scraper.toml", "tests"}
"""A manifest below makes another scraper, and recorded cases are no part of one."""
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="/\\:"), min_size=1, max_size=40
)
PARTS = NAMES.filter(lambda name: not files.is_skipped(name) and name.isprintable() and name not in TAKEN)
TREES = st.dictionaries(st.lists(PARTS, min_size=1, max_size=4).map("/".join), st.binary(max_size=3000), max_size=8)


def written(tree: dict[str, bytes], folder: Path) -> tuple[SourceFile, ...]:
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return list_files(folder, folder.resolve(), marker="scraper.toml", label="it")


def is_tree(tree: dict[str, bytes]) -> bool:
    """No name is both a file and a folder."""
    folders = {name.rsplit("/", at + 1)[0] for name in tree for at in range(name.count("/"))}
    return not folders & tree.keys()


@settings(deadline=None, max_examples=60)
@given(TREES.filter(is_tree))
def test_what_is_packed_comes_out(tree: dict[str, bytes]) -> None:
    tree = tree | {"scraper.toml": MANIFEST}
    with tempfile.TemporaryDirectory() as place:
        source, out = Path(place, "source"), Path(place, "out")
        out.mkdir()
        packed = io.BytesIO()
        pack(written(tree, source), packed)
        for path in source.rglob("*"):
            os.utime(path, (1, 1))
        again = io.BytesIO()
        pack(list_files(source, source.resolve(), marker="scraper.toml", label="it"), again)
        assert again.getvalue() == packed.getvalue()
        unpack(packed, "a.tar.gz", out)
        assert everything(out) == tree


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    packed = io.BytesIO()
    pack(written(GOOD, tmp_path / "source"), packed)
    with gzip.open(io.BytesIO(packed.getvalue())) as stream:
        digest = hashlib.sha256(stream.read()).hexdigest()
    assert digest == "ed387de5817e04d97391a2606218bb7a9ad1387b37acfea28b0a300c23509212"


def mutated(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """Bytes replaced, inserted or cut out, at places given as parts of the whole."""
    for where, cut, new in edits:
        at = int(where * len(data))
        data = data[:at] + new + data[at + cut :]
    return data


EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 2, 4, 16, 512]), st.binary(max_size=8)), min_size=1, max_size=6
)
WHOLE: dict[str, Callable[[], bytes]] = {
    "a.tar": good_tar,
    "a.tar.gz": lambda: gzip.compress(good_tar(), mtime=0),
    "a.zip": zipped,
    "b.zip": lambda: zipped(how=zipfile.ZIP_STORED),
}


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(sorted(WHOLE)), EDITS)
def test_damage_is_refused_or_harmless(name: str, edits: list[tuple[float, int, bytes]]) -> None:
    attack(mutated(WHOLE[name](), edits), name)


@settings(deadline=None, max_examples=150)
@given(EDITS)
def test_damage_inside_the_compression_is_refused_or_harmless(edits: list[tuple[float, int, bytes]]) -> None:
    attack(gzip.compress(mutated(good_tar(), edits), mtime=0), "a.tar.gz")


def attack(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        into = Path(place, "into")
        into.mkdir()
        message = ""
        try:
            unpack(io.BytesIO(data), name, into)
        except ScraperInvalid as error:
            message = error.message
        assert message.isprintable()
        check_inside(into)
        assert os.listdir(place) == ["into"]
