"""The content type of an answer, and the charset of its page as the HTML standard finds it: byte order mark, header,
`<meta>`, and then a guess."""

import re
from collections.abc import Sequence
from functools import lru_cache

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_SHORT = 200
"""Characters of a content type that is remembered. Sites choose them, and may send a new one with every page."""
_MARK_STARTS = frozenset(mark[:1] for mark, _ in _MARKS)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_NEAR = 1024
_FAR = 64 * 1024
"""Bytes of the head that are searched. The standard asks for 1,024, but browsers start over when they meet it later."""
_HEAD_ENDS = re.compile(rb"</head|<body", re.IGNORECASE)
_ASIDE = re.compile(rb"<!--.*?(?:-->|$)|<(script|style)\b.*?(?:</\1|$)", re.IGNORECASE | re.DOTALL)

_LABELS = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "utf-16-be": "unicodefffe utf-16be",
    "cp1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
    "iso_8859-1 iso_8859-1:1987 l1 latin-1 latin1 us-ascii windows-1252 x-cp1252",
    "iso8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e "
    "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
    "iso_8859-7:1987 sun_eu_greek",
    "iso8859-8": "csiso88598e csiso88598i csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-8859-8-i iso-ir-138 "
    "iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 logical visual",
    "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9 latin9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "mac-roman": "csmacintosh mac macintosh x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp866": "866 cp866 csibm866 ibm866",
    "cp874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "cp1250": "cp1250 windows-1250 x-cp1250",
    "cp1251": "cp1251 windows-1251 x-cp1251",
    "cp1253": "cp1253 windows-1253 x-cp1253",
    "cp1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
    "windows-1254 x-cp1254",
    "cp1255": "cp1255 windows-1255 x-cp1255",
    "cp1256": "cp1256 windows-1256 x-cp1256",
    "cp1257": "cp1257 windows-1257 x-cp1257",
    "cp1258": "cp1258 windows-1258 x-cp1258",
    "gb18030": "chinese csgb2312 csiso58gb231280 gb18030 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc_jp": "cseucpkdfmtjapanese euc-jp eucjp x-euc-jp",
    "iso2022_jp": "csiso2022jp iso-2022-jp",
    "cp932": "cp932 csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "cp949": "cp949 cseuckr csksc56011987 euc-kr euckr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 "
    "ksc_5601 uhc windows-949",
    "iso2022_kr": "csiso2022kr iso-2022-kr",
    "hz": "hz-gb-2312",
}
"""The labels of the Encoding Standard, and a few more that pages have, by Python's name of the codec."""
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}


def find_charset(content_type: str, body: bytes) -> str:
    """The codec to decode `body` with. It always names a codec that Python has."""
    if body[:1] in _MARK_STARTS:
        for mark, codec in _MARKS:
            if body.startswith(mark):
                return codec
    named = _remembered(content_type) if len(content_type) <= _SHORT else _named(content_type)
    return named or _meta(body) or _guess(body)


def _named(content_type: str) -> str | None:
    named = _HEADER.search(content_type)
    return _CODECS.get(named[1].lower()) if named else None


_remembered = lru_cache(maxsize=256)(_named)


def _meta(body: bytes) -> str | None:
    match = _XML.match(body, 0, _NEAR) if body[:64].lstrip().startswith(b"<?xml") else None
    match = _META.search(_visible(body[:_NEAR])) or match or _late(body)
    codec = _CODECS.get(match[1].decode("ascii").lower()) if match else None
    # A declaration that could be read byte by byte is not in UTF-16, whatever it says.
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec


def _late(body: bytes) -> re.Match[bytes] | None:
    if len(body) <= _NEAR:
        return None
    head = _visible(body[:_FAR])
    end = _HEAD_ENDS.search(head)
    return _META.search(head, 0, end.start() if end else len(head))


def _visible(head: bytes) -> bytes:
    """Without comments, scripts and styles, which may speak of other pages."""
    return _ASIDE.sub(b"", head) if b"<!--" in head or b"<s" in head or b"<S" in head else head


def _guess(body: bytes) -> str:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


_PARTS = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"?)+')
_TYPE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*(?:;|$)")
_CHARSET = re.compile(r';\s*charset\s*=\s*("(?:[^"\\]|\\.)*"?|[^\s;"]+)', re.IGNORECASE)


def extract_content_type(values: Sequence[str]) -> str:
    """The last value that is a type counts. Where it names no charset, that of the same type before it holds on.

    Empty when there is none. A single value is handed back as it is.
    """
    if len(values) == 1 and "," not in values[0]:
        return values[0]
    found = essence = charset = ""
    for value in (part for given in values for part in _PARTS.findall(given)):
        match = _TYPE.match(value)
        if match is None or match[1] == "*/*":
            continue
        named = _CHARSET.search(value)
        kind = match[1].lower()
        if kind != essence or named:
            charset = named[1] if named else ""
        found, essence = value.strip(), kind
        if charset and not named:
            found = f"{found}; charset={charset}"
    return found or (values[0] if values else "")
