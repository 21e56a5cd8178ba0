"""Small documents for tests, made here: PDF, DOCX and XLSX."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import openpyxl

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def pdf(pages: Sequence[Sequence[str]]) -> bytes:
    """A page for each list of lines."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        words = b" ".join(b"(%b) Tj T*" % _escaped(line) for line in lines)
        stream = b"BT /F1 12 Tf 50 780 Td 14 TL %b ET" % words
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
        objects.append(page + b"/Contents %d 0 R >>" % len(objects))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (b" ".join(kids), len(kids))
    objects.append(b"<< /Title (Annual report) >>")
    made, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    end = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    return made + b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, table) + end % (count, count - 1, len(made))


def _escaped(line: str) -> bytes:
    return line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("latin-1")


def docx() -> bytes:
    """A heading, a paragraph with a bold word, and a table."""
    rows = "".join(
        f"<w:tr>{''.join(f'<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>' for cell in row)}</w:tr>"
        for row in (("Kiln", "Price"), ("Small", "12"))
    )
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Kilns</w:t></w:r></w:p>'
        '<w:p><w:r><w:t xml:space="preserve">Kilns are </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>hot</w:t></w:r></w:p>'
        f"<w:tbl>{rows}</w:tbl>"
    )
    target = f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="word/document.xml"/>'
    style = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kind}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{target}</Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{style}</w:styles>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, text in parts.items():
            made.writestr(name, text)
    return file.getvalue()


def xlsx(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """Rows by sheet."""
    book = openpyxl.Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()
