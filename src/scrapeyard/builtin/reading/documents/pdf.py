"""PDF by PDFium: the text of each page."""

from threading import Lock
from typing import Any

from scrapeyard.builtin.pages.port import MAX_TEXT, RawPage
from scrapeyard.builtin.reading.documents.document import Document, DocumentRefused, needs

MAX_PAGES = 500
_ONE_AT_A_TIME = Lock()
"""PDFium must not be used by two threads."""


def read_pdf(page: RawPage) -> Document:
    """The text, page by page. Raises DocumentRefused for one that needs a password or is broken."""
    try:
        import pypdfium2 as pdfium  # noqa: PLC0415 - an extra
    except ImportError:
        raise needs("pypdfium2") from None
    with _ONE_AT_A_TIME:
        try:
            document = pdfium.PdfDocument(page.body)
        except pdfium.PdfiumError as error:
            raise DocumentRefused(f"it cannot be opened: {error}") from None
        try:
            return _read(document)
        finally:
            document.close()


def _read(document: Any) -> Document:
    count, texts, room = len(document), list[str](), MAX_TEXT
    for number in range(min(count, MAX_PAGES)):
        text = _page_text(document, number)
        texts.append(text)
        room -= len(text)
        if room < 0:
            break
    said = {name.lower(): value for name, value in document.get_metadata_dict(skip_empty=True).items()}
    warnings = [f"the text is of the first {len(texts)} of {count} pages"] if len(texts) < count else []
    text = "\n\n".join(filter(None, texts))
    if not text:
        warnings.append("the document has no text: its pages may be pictures")
    return Document(
        title=said.get("title"),
        text=text,
        markdown=_paragraphs(text),
        metadata={"pages": count, **said},
        warnings=warnings,
    )


def _page_text(document: Any, number: int) -> str:
    sheet = document[number]
    try:
        words = sheet.get_textpage()
        try:
            text: str = words.get_text_bounded()
        finally:
            words.close()
    finally:
        sheet.close()
    return "\n".join(line.rstrip() for line in text.replace("\ufffe", "").splitlines()).strip()


def _paragraphs(text: str) -> str:
    """The lines as Markdown that keeps them: nothing of the text may read as a mark of Markdown."""
    return "\n".join(_escaped(line) for line in text.splitlines())


def _escaped(line: str) -> str:
    return f"\\{line}" if line.startswith(("#", ">", "- ", "+ ", "* ", "```", "|")) else line
