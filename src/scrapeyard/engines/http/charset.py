"""Which charset a page is in, as a Python codec name.

The order of the HTML standard: a byte order mark, the Content-Type header, a meta element in the first kilobyte or an
XML declaration at the very start, then UTF-8 if the page is valid UTF-8 and Windows-1252 if not. Only codecs that
browsers know are taken: a site cannot make us run one of Python's odd ones. Labels mean what they mean on the web:
`latin1` is Windows-1252, `gb2312` is GB18030.
"""

import re

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_META_WITHIN = 1024

_LABELS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8",
    "utf-16-le": "utf-16 utf-16le ucs-2 unicode",
    "utf-16-be": "utf-16be",
    "cp1252": "windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso88591 iso_8859-1 latin1 latin-1 l1 ascii us-ascii",
    "iso8859-2": "iso-8859-2 iso8859-2 iso88592 iso_8859-2 latin2 l2",
    "iso8859-3": "iso-8859-3",
    "iso8859-4": "iso-8859-4",
    "iso8859-5": "iso-8859-5 iso8859-5 iso88595 cyrillic",
    "iso8859-6": "iso-8859-6 arabic",
    "iso8859-7": "iso-8859-7 greek",
    "iso8859-8": "iso-8859-8 iso-8859-8-i hebrew",
    "iso8859-10": "iso-8859-10 latin6",
    "iso8859-13": "iso-8859-13",
    "iso8859-14": "iso-8859-14",
    "iso8859-15": "iso-8859-15 iso8859-15 iso885915 latin9 l9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "koi8-r koi8 koi",
    "koi8-u": "koi8-u",
    "mac-roman": "macintosh x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic",
    "cp866": "ibm866 cp866",
    "cp874": "windows-874 tis-620 iso-8859-11 iso8859-11 dos-874",
    "cp1250": "windows-1250 cp1250 x-cp1250",
    "cp1251": "windows-1251 cp1251 x-cp1251",
    "cp1253": "windows-1253 cp1253",
    "cp1254": "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 latin5 l5",
    "cp1255": "windows-1255 cp1255",
    "cp1256": "windows-1256 cp1256",
    "cp1257": "windows-1257 cp1257",
    "cp1258": "windows-1258 cp1258",
    "gb18030": "gb18030 gbk gb2312 gb_2312 gb_2312-80 x-gbk chinese csgb2312 iso-ir-58",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc_jp": "euc-jp eucjp x-euc-jp",
    "iso2022_jp": "iso-2022-jp",
    "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms932 ms_kanji csshiftjis cp932",
    "cp949": "euc-kr euckr cseuckr ks_c_5601-1987 ksc5601 ksc_5601 korean iso-ir-149 windows-949 uhc cp949",
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}


def find_charset(content_type: str, body: bytes) -> str:
    """The codec to decode `body` with. It always names a codec that Python has."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return codec
    return _said(content_type) or _meta(body) or _guess(body)


def _said(content_type: str) -> str | None:
    match = _HEADER.search(content_type)
    return _CODECS.get(match[1].lower()) if match else None


def _meta(body: bytes) -> str | None:
    match = _META.search(body, 0, _META_WITHIN) or _XML.match(body, 0, _META_WITHIN)
    codec = _CODECS.get(match[1].decode("ascii").lower()) if match else None
    # A declaration that could be read byte by byte is not in UTF-16, whatever it says.
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec


def _guess(body: bytes) -> str:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
