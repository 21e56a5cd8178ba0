"""Spellings of the world's currencies, and which one a sign means in which country."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from functools import cache

_SPELLINGS = """
AED AED د.إ درهم Dh Dhs Dh. DHS
AFN ؋ Af افغانی
ALL Lek Lekë lekë
AMD ֏ դր. դր
ANG NAf. NAƒ ƒ
AOA Kz kwz
ARS AR$
AUD AU$ AU_$ A$
AWG Afl. Afl
AZN ₼ ман. ман
BAM KM км
BBD Bds$
BDT ৳ টকা Tk Tk. ৲
BGN лв. лв lv.
BHD BD .د.ب د.ب
BIF FBu Fbu
BND BN$
BOB Bs Bs. $b
BRL R$
BTC ₿ Ƀ
BTN Nu. Nu
BWP P
BYN Br Br. бел.руб. Rbl BYR
BZD BZ$
CAD CA$ CAN$ C$ CND
CHF CHF CHf SFr. SFr Fr. sFr. Fr
CLP CL$
CNY CN¥ 元 yuan 人民币 人民幣 圆 圓 RMB
COP CO$ COL$
CRC ₡
CUC CUC$
CVE Esc CV$
CZK Kč Kčs kč
DEM DM
DJF Fdj
DKK DKK
DOP RD$
DZD دج د.ج DA
EGP ج.م جنيه E£ LE L.E. EGP£
ERN Nfk ናቕፋ نافكا
ESP Pts ₧
ETB ብር
EUR € EUR euro euros Euro Euros EURO ευρώ евро
FRF ₣ ₶
GBP £ ￡ GBp pound pounds stg
GEL ₾ ლ ლარი lari
GHS GH₵ ₵ GH¢ ¢
GMD D
GNF FG GFr
GTQ Q
GYD G$ GY$
HKD HK$
HNL L
HRK kn Kn
HTG G
HUF Ft
IDR Rp Rp.
ILS ₪ NIS nis ש״ח ש"ח ש'ח
INR ₹ Rs Rs. Rs./- INR ரூ रु रु. र૱ ૱ र Re
IQD ع.د د.ع ID
IRR ﷼ ریال تومان تومن
ISK ISK
ITL ₤
JMD J$
JOD د.أ د.ا دينار_أردني JD JD.
JPY 円 ￥ ¥ yen 日圓 JP¥
KES KSh KShs Ksh KSh. KES
KGS с som сом
KHR ៛
KMF KMF
KPW
KRW 원 ₩ ￦ won
KWD KD دينار_كويتي د.ك K.D.
KZT ₸ тңг тңг. тг тг. тенге
LAK ₭
LBP LB£ ل.ل L.L.
LKR රු රු. SLRs
LRD LD
LTL Lt
LVL Ls
LYD ل.د د.ل
MAD د.م. د.م MAD
MDL MDL лей
MGA Ar
MKD ден ДЕН ден. mkd
MMK Ks
MNT ₮
MOP MOP$
MRU UM
MUR ₨
MVR Rf ރ
MWK MK
MXN MX$ Mex$
MYR RM
MZN MT MTn
NGN ₦
NIO
NOK NOK
NPR नेरू NRs
NZD NZ$
OMR ر.ع. ر.ع OMR
PAB B/. B/
PEN S/. S/
PGK K
PHP ₱ Php PhP
PKR PKRs
PLN zł zl Zł ZŁ zł. zlotych złotych pln
PTE PTE
PYG ₲
QAR ر.ق. ر.ق QR
RON lei LEI Lei leu
RSD дин. дин Дин din din. Din RSD Dinara динар динара
RUB ₽ руб. руб р. р Р РУБ Руб Руб. RUR
RWF FRw RF R₣
SAR ر.س. ر.س ريال SR
SDG ج.س. ج.س
SEK SEK
SGD S$
SLL Le
SOS Sh.So. ش.ص
SPL SPL
SRD
STN Db
SYP SY£ ل.س ش.ج
SZL E
THB ฿ บาท
TND DT د.ت
TOP T$
TRY ₺ TL
TTD TT$
TWD NT$ NT
TZS TSh TZS
UAH ₴ грн. грн гривень hrn
UGX USh
USD US$ US_$ $ dollar dollars
UYU $U
UZS so'm Sʻ S' сўм сум
VES
VND ₫ đ Đ VNĐ vnđ đồng
VUV VT Vt
WST WS$
XAF FCFA
XCD EC$
XOF CFA
XPF
YER ر.ي. ر.ي
ZAR R
ZMW ZK
ZWL Z$
franc franc francs دينار د.
kr kr Kr kr. KR Kr.
"""
"""A code and its spellings, with an underscore for a space. The last two lines are shared by several currencies."""

_CODES = """AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTC BTN BWP BYN BZD CAD
CDF CHF CLF CLP CNY COP CRC CUC CUP CVE CZK DEM DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP FRF GBP GEL GHS GIP GMD GNF GTQ
GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LTL
LVL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PTE
PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLL SOS SPL SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD
TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWL"""

_THREE_DECIMALS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})
_ONLY_THOUSANDS = frozenset({"CLP", "COP", "IDR", "ISK", "PYG", "VND"})

_BY_PLACE = {
    "$": "us USD ca CAD au AUD nz NZD sg SGD hk HKD tw TWD mx MXN ar ARS cl CLP co COP uy UYU br BRL do DOP",
    "kr": "se SEK no NOK dk DKK is ISK fo DKK",
    "£": "uk GBP gb GBP eg EGP lb LBP",
    "¥": "jp JPY cn CNY",
    "￥": "jp JPY cn CNY",
    "元": "cn CNY tw TWD hk HKD",
    "Rs": "in INR pk PKR lk LKR np NPR mu MUR",
    "franc": "ch CHF fr EUR",
    "R": "za ZAR",
    "lei": "ro RON md MDL",
    "руб": "ru RUB by BYN",
    "р": "ru RUB by BYN",
    "din": "rs RSD",
    "Br": "by BYN et ETB",
    "ريال": "sa SAR om OMR qa QAR ye YER ir IRR",
    "درهم": "ae AED ma MAD",
    "دينار": "kw KWD jo JOD bh BHD iq IQD dz DZD tn TND ly LYD",
}


def iso_code(sign: str, place: str = "") -> str | None:
    """The ISO 4217 code that a sign means; None if it is not a currency, or several share it.

    `place` is a country as in a domain (`ca`, `uk`) and decides what `$` and `kr` mean; without it `$` is USD.
    """
    plain = sign.strip()
    upper = plain.upper()
    if upper in codes():
        return upper
    local = _local(plain, place.lower())
    return local or _table().get(plain) or _table().get(plain.rstrip(".")) or _table().get(plain.lower())


def has_three_decimals(code: str | None) -> bool:
    """Whether prices in it are written to the thousandth, as in `1.250 KD`."""
    return code in _THREE_DECIMALS


def has_only_thousands(code: str | None) -> bool:
    """Whether prices in it have no decimals and a dot between thousands, as in `12.990 CLP`."""
    return code in _ONLY_THOUSANDS


@cache
def codes() -> frozenset[str]:
    """All ISO codes known."""
    return frozenset(_CODES.split())


@cache
def signs() -> re.Pattern[str]:
    """Matches every spelling except single letters; spellings made of letters match only at word boundaries."""
    spelt = {*(sign for sign in _table() if len(sign) > 1 or not _is_latin(sign)), *codes()}
    spelt |= {code.lower() for code in codes() if code.lower() not in _LOWER_WORDS}
    return _any_of(sorted(spelt, key=len, reverse=True))


@cache
def letters() -> re.Pattern[str]:
    """Finds single letters that are currencies beside a number, as in `R273.00`."""
    return _any_of([*"RLPEDKQG", "q", "с"])


_STEMS = frozenset({"руб"})
"""Prefixes: each matches every word that begins with it, such as `рублей`."""
_LOWER_WORDS = frozenset({"all", "top", "try", "mad", "bob", "cup", "lak", "mop", "pen", "sos", "php", "mga", "std"})


def _any_of(spelt: list[str]) -> re.Pattern[str]:
    """Tries spellings that begin with a letter only at the start of a word, all at once, which is much faster."""
    words = "|".join(_ended(sign) for sign in spelt if sign[0].isalpha())
    others = "|".join(_ended(sign) for sign in spelt if not sign[0].isalpha())
    return re.compile(rf"(?<![^\W\d_])(?:{words})" + (f"|{others}" if others else ""))


def _ended(sign: str) -> str:
    is_word = sign[-1].isalpha() and sign not in _STEMS
    return re.escape(sign) + (r"(?![^\W\d_])" if is_word else "")


def _is_latin(sign: str) -> bool:
    return sign.isascii() and sign.isalpha()


@cache
def _table() -> dict[str, str | None]:
    table: dict[str, str | None] = {}
    for line in _SPELLINGS.strip().splitlines():
        code, *spellings = line.split()
        for spelling in spellings:
            table.setdefault(spelling.replace("_", " "), code if code in codes() else None)
    return table


def _local(sign: str, place: str) -> str | None:
    if not place:
        return None
    for shared, places in _BY_PLACE.items():
        if sign.rstrip(".").lower() == shared.lower():
            pairs = places.split()
            return dict(zip(pairs[::2], pairs[1::2], strict=True)).get(place)
    return None
