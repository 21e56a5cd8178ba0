"""What the vendors' refusals look like: headers, addresses and pieces of markup, each with the reason it counts."""

from typing import Literal

from msgspec import Struct

BlockKind = Literal["blocked", "captcha", "challenge", "rate_limited", "shell"]

_WORTH_TRYING = 0.45
_CERTAIN = 0.7


class Block(Struct, frozen=True, kw_only=True):
    """A refusal that was recognised in an answer.

    `captcha` wants a person, `challenge` a browser that runs scripts, `rate_limited` patience, `blocked` another face,
    `shell` a browser that fills the page.
    """

    kind: BlockKind
    vendor: str = ""
    """Who keeps the door, in lower case; empty: not known."""
    reason: str
    """In words, for `explain` and the error's message."""
    confidence: float
    """0 to 1. A plain 403 is 0.5, a vendor's own page 0.9 or more, an empty page 0.3."""

    @property
    def worth_trying(self) -> bool:
        """Whether another way is worth a request. A rate limit is not: it asks for patience."""
        return self.kind != "rate_limited" and self.confidence >= _WORTH_TRYING

    @property
    def certain(self) -> bool:
        """Whether the answer is no page at all. One that is not certain is handed out when nothing better is had."""
        return self.confidence >= _CERTAIN


Holds = Literal["always", "bare", "refused"]


class Mark(Struct, frozen=True):
    """One thing to look for. `needle` in `value` of a header, in the URL, or in the markup."""

    needle: str
    vendor: str
    kind: BlockKind
    holds: Holds
    why: str
    confidence: float = 0.95


class HeaderMark(Struct, frozen=True):
    """A header and what its value must contain; empty: any value."""

    name: str
    needle: str
    vendor: str
    kind: BlockKind
    holds: Holds
    why: str
    confidence: float = 0.95


HEADERS: tuple[HeaderMark, ...] = (
    HeaderMark("cf-mitigated", "challenge", "cloudflare", "challenge", "always", "Cloudflare says it challenges", 1.0),
    HeaderMark("x-vercel-mitigated", "challenge", "vercel", "challenge", "always", "Vercel says it challenges", 1.0),
    HeaderMark("x-vercel-mitigated", "deny", "vercel", "blocked", "always", "Vercel's firewall denied it", 1.0),
    HeaderMark("x-amzn-waf-action", "challenge", "aws", "challenge", "always", "AWS WAF says it challenges", 1.0),
    HeaderMark("x-amzn-waf-action", "captcha", "aws", "captcha", "always", "AWS WAF asks for a captcha", 1.0),
    HeaderMark("x-sucuri-block", "", "sucuri", "blocked", "always", "Sucuri's firewall gives its rule", 1.0),
    HeaderMark("x-kpsdk-ct", "", "kasada", "challenge", "refused", "Kasada hands out its token with a refusal"),
    HeaderMark("x-kpsdk-r", "", "kasada", "challenge", "refused", "Kasada hands out its token with a refusal"),
    HeaderMark("x-kpsdk-im", "", "kasada", "challenge", "refused", "Kasada hands out its token with a refusal"),
    HeaderMark("x-dd-b", "", "datadome", "captcha", "refused", "DataDome's verdict stands in the header"),
    HeaderMark("x-datadome", "", "datadome", "captcha", "refused", "DataDome answered with a refusal", 0.9),
    HeaderMark("x-px-block-score", "", "human", "captcha", "always", "HUMAN gives its score for the block"),
    HeaderMark("x-distil-cs", "", "imperva", "challenge", "refused", "Distil's challenge header"),
    HeaderMark("x-iinfo", "", "imperva", "blocked", "refused", "Imperva answered with a refusal", 0.75),
    HeaderMark("x-cdn", "incapsula", "imperva", "blocked", "refused", "Imperva answered with a refusal", 0.75),
    HeaderMark("x-cdn", "imperva", "imperva", "blocked", "refused", "Imperva answered with a refusal", 0.75),
    HeaderMark("server", "akamaighost", "akamai", "blocked", "refused", "Akamai's edge refused, not the site", 0.8),
    HeaderMark("server", "ddos-guard", "ddos-guard", "challenge", "refused", "DDoS-Guard refused", 0.8),
    HeaderMark("server", "sucuri", "sucuri", "blocked", "refused", "Sucuri's firewall refused, not the site", 0.8),
    HeaderMark("server", "qrator", "qrator", "blocked", "refused", "Qrator refused, not the site", 0.8),
    HeaderMark("server", "rbzproxy", "reblaze", "blocked", "refused", "Reblaze refused, not the site", 0.8),
    HeaderMark("server", "cloudflare", "cloudflare", "blocked", "refused", "a refusal from Cloudflare's edge", 0.6),
    HeaderMark("location", "captcha", "", "captcha", "always", "it sends us to a captcha", 0.8),
    HeaderMark("location", "/sorry/index", "google", "captcha", "always", "it sends us to Google's apology"),
    HeaderMark("set-cookie", "datadome=", "datadome", "captcha", "refused", "a refusal with DataDome's cookie", 0.85),
    HeaderMark("set-cookie", "_pxhd=", "human", "captcha", "refused", "a refusal with HUMAN's cookie", 0.75),
    HeaderMark("set-cookie", "_abck=", "akamai", "blocked", "refused", "a refusal with Akamai's bot cookie", 0.75),
    HeaderMark("set-cookie", "incap_ses", "imperva", "blocked", "refused", "a refusal with Imperva's cookie", 0.75),
)

ADDRESSES: tuple[Mark, ...] = (
    Mark("/sorry/index", "google", "captcha", "always", "we were sent to Google's apology"),
    Mark("/showcaptcha", "yandex", "captcha", "always", "we were sent to Yandex's captcha"),
    Mark("validate.perfdrive.com", "radware", "captcha", "always", "we were sent to Radware's check"),
    Mark("/.well-known/sgcaptcha", "siteground", "captcha", "always", "we were sent to SiteGround's captcha"),
    Mark("/errors/validatecaptcha", "amazon", "captcha", "always", "we were sent to Amazon's captcha"),
    Mark("/_____tmd_____/punish", "alibaba", "captcha", "always", "we were sent to Alibaba's penalty page"),
    Mark("wappass.baidu.com", "baidu", "captcha", "always", "we were sent to Baidu's check"),
    Mark("/distil_r_captcha", "imperva", "captcha", "always", "we were sent to Distil's captcha"),
    Mark("/distil_r_blocked", "imperva", "blocked", "always", "we were sent to Distil's refusal"),
    Mark("geo.captcha-delivery.com", "datadome", "captcha", "always", "we were sent to DataDome's captcha"),
)

MARKUP: tuple[Mark, ...] = (
    Mark("_cf_chl_opt", "cloudflare", "challenge", "always", "Cloudflare's challenge with its options", 0.99),
    Mark("__cf_chl_", "cloudflare", "challenge", "always", "a form with Cloudflare's challenge token"),
    Mark("jschl_vc", "cloudflare", "challenge", "always", "Cloudflare's arithmetic challenge"),
    Mark("/orchestrate/", "cloudflare", "challenge", "bare", "a script of Cloudflare's challenge"),
    Mark("cf-browser-verification", "cloudflare", "challenge", "always", "Cloudflare checks the browser"),
    Mark('id="challenge-form"', "cloudflare", "challenge", "bare", "a challenge form and nothing else"),
    Mark("cf-turnstile", "cloudflare", "captcha", "bare", "a Turnstile widget and nothing else", 0.85),
    Mark("challenges.cloudflare.com", "cloudflare", "captcha", "bare", "a Turnstile widget and nothing else", 0.85),
    Mark("errors.edgesuite.net", "akamai", "blocked", "always", "Akamai's page with a link to its errors"),
    Mark("sec-if-cpt-container", "akamai", "challenge", "always", "Akamai's interstitial challenge"),
    Mark("sec-cpt-if", "akamai", "challenge", "always", "Akamai's interstitial challenge"),
    Mark("bm-verify=", "akamai", "challenge", "bare", "Akamai loads the page again with a token"),
    Mark('id="px-captcha"', "human", "captcha", "always", "HUMAN's press-and-hold button"),
    Mark("px-captcha", "human", "captcha", "bare", "HUMAN's press-and-hold button"),
    Mark("captcha.px-cdn.net", "human", "captcha", "always", "HUMAN's captcha script"),
    Mark("captcha.px-cloud.net", "human", "captcha", "always", "HUMAN's captcha script"),
    Mark("captcha.perimeterx.net", "human", "captcha", "always", "HUMAN's captcha script"),
    Mark('"blockscript":', "human", "captcha", "always", "HUMAN's refusal as JSON"),
    Mark("_pxappid", "human", "captcha", "bare", "HUMAN's sensor and nothing else", 0.85),
    Mark("captcha-delivery.com", "datadome", "captcha", "bare", "DataDome's captcha"),
    Mark("captcha-delivery.com", "datadome", "captcha", "refused", "DataDome's captcha"),
    Mark("made us think you were a bot", "imperva", "challenge", "always", "Distil takes us for a bot"),
    Mark("made us think that you are a bot", "imperva", "challenge", "always", "Distil takes us for a bot"),
    Mark("moving through this website with super-human speed", "imperva", "challenge", "always", "Distil's reasons"),
    Mark("distil_r_captcha", "imperva", "captcha", "bare", "Distil's captcha"),
    Mark("distil_ident_block", "imperva", "challenge", "bare", "Distil's script and nothing else", 0.85),
    Mark("__jsl_clearance", "jiasule", "challenge", "bare", "Jiasule's script that sets a cookie"),
    Mark("incapsula incident id", "imperva", "blocked", "bare", "Imperva's incident number"),
    Mark("_incapsula_resource", "imperva", "challenge", "bare", "Imperva's frame or script and nothing else"),
    Mark("_incapsula_resource", "imperva", "challenge", "refused", "Imperva's frame beside a refusal"),
    Mark("gokuprops", "aws", "challenge", "always", "AWS WAF's challenge with its properties"),
    Mark("awswafcookiedomainlist", "aws", "challenge", "bare", "AWS WAF's challenge and nothing else"),
    Mark(".awswaf.com/", "aws", "challenge", "bare", "AWS WAF's script and nothing else", 0.85),
    Mark("sucuri_cloudproxy_js", "sucuri", "challenge", "bare", "Sucuri's script that sets a cookie"),
    Mark("sucuri website firewall", "sucuri", "blocked", "bare", "the page of Sucuri's firewall"),
    Mark("kpsdk", "kasada", "challenge", "bare", "Kasada's script and nothing else"),
    Mark('window["bobcmn"]', "f5", "challenge", "always", "F5's challenge script"),
    Mark("/tspd/", "f5", "challenge", "bare", "F5's challenge script and nothing else"),
    Mark("/_fs-ch-", "fastly", "challenge", "bare", "Fastly's client challenge"),
    Mark("vercel security checkpoint", "vercel", "challenge", "bare", "Vercel's checkpoint"),
    Mark("/.well-known/vercel/security/", "vercel", "challenge", "bare", "Vercel's checkpoint"),
    Mark("/.well-known/ddos-guard/", "ddos-guard", "challenge", "bare", "DDoS-Guard's check and nothing else"),
    Mark("/.well-known/sgcaptcha", "siteground", "captcha", "always", "SiteGround sends us to its captcha"),
    Mark("/.within.website/x/", "anubis", "challenge", "bare", "Anubis asks for proof of work"),
    Mark("perfdrive.com", "radware", "captcha", "bare", "Radware's check and nothing else"),
    Mark("rbzns", "reblaze", "challenge", "bare", "Reblaze's script and nothing else", 0.85),
    Mark("_____tmd_____", "alibaba", "captcha", "always", "Alibaba's penalty page"),
    Mark("errors.aliyun.com", "alibaba", "blocked", "bare", "Alibaba Cloud's firewall page"),
    Mark("/errors/validatecaptcha", "amazon", "captcha", "bare", "Amazon's image captcha"),
    Mark("smartcaptcha.", "yandex", "captcha", "bare", "Yandex's captcha and nothing else", 0.85),
    Mark("g-recaptcha", "recaptcha", "captcha", "bare", "a reCAPTCHA and nothing else", 0.8),
    Mark("/recaptcha/api.js", "recaptcha", "captcha", "bare", "a reCAPTCHA and nothing else", 0.8),
    Mark("/recaptcha/enterprise.js", "recaptcha", "captcha", "bare", "a reCAPTCHA and nothing else", 0.8),
    Mark("h-captcha", "hcaptcha", "captcha", "bare", "an hCaptcha and nothing else", 0.8),
    Mark("hcaptcha.com/1/api.js", "hcaptcha", "captcha", "bare", "an hCaptcha and nothing else", 0.8),
    Mark("funcaptcha.com", "arkose", "captcha", "bare", "an Arkose puzzle and nothing else", 0.8),
    Mark("arkoselabs.com", "arkose", "captcha", "bare", "an Arkose puzzle and nothing else", 0.8),
    Mark("initgeetest", "geetest", "captcha", "bare", "a GeeTest puzzle and nothing else", 0.8),
    Mark("frc-captcha", "friendly captcha", "captcha", "bare", "a Friendly Captcha and nothing else", 0.8),
)

CLOUDFLARE_CODES: dict[str, BlockKind] = {
    "1005": "blocked",
    "1006": "blocked",
    "1007": "blocked",
    "1008": "blocked",
    "1009": "blocked",
    "1010": "blocked",
    "1012": "blocked",
    "1015": "rate_limited",
    "1020": "blocked",
    "1106": "blocked",
}
"""Cloudflare's numbered refusals. Its other 1xxx codes tell of faults in the site's own settings."""

TITLES: tuple[Mark, ...] = (
    Mark("just a moment...", "cloudflare", "challenge", "always", "Cloudflare asks for a moment"),
    Mark("attention required! | cloudflare", "cloudflare", "blocked", "always", "Cloudflare requires attention"),
    Mark("pardon our interruption", "imperva", "challenge", "always", "Imperva begs pardon for its interruption"),
    Mark("access to this page has been denied", "human", "captcha", "always", "HUMAN denied the page"),
    Mark("access to this page has been blocked", "human", "captcha", "always", "HUMAN blocked the page"),
    Mark("human verification", "", "captcha", "always", "it wants to verify a human", 0.85),
    Mark("robot check", "amazon", "captcha", "always", "a check for robots", 0.9),
    Mark("bot verification", "", "challenge", "always", "a check for robots", 0.9),
    Mark("vercel security checkpoint", "vercel", "challenge", "always", "Vercel's checkpoint"),
    Mark("ddos-guard", "ddos-guard", "challenge", "always", "DDoS-Guard's check"),
    Mark("making sure you're not a bot", "anubis", "challenge", "always", "Anubis asks for proof of work"),
    Mark("radware bot manager captcha", "radware", "captcha", "always", "Radware's captcha"),
    Mark("client challenge", "fastly", "challenge", "always", "Fastly's client challenge", 0.9),
    Mark("sucuri website firewall", "sucuri", "blocked", "always", "the page of Sucuri's firewall"),
    Mark("you have been blocked", "", "blocked", "always", "the title says so", 0.9),
    Mark("access denied", "", "blocked", "bare", "the title says so", 0.8),
    Mark("request rejected", "f5", "blocked", "bare", "the title says so", 0.85),
    Mark("security check", "", "challenge", "bare", "the title speaks of a security check", 0.75),
    Mark("captcha", "", "captcha", "bare", "the title speaks of a captcha", 0.75),
    Mark("安全验证", "", "captcha", "always", "the title asks for a security check", 0.85),
    Mark("百度安全验证", "baidu", "captcha", "always", "Baidu's check"),
    Mark("보안 확인", "", "challenge", "bare", "the title speaks of a security check", 0.75),
    Mark("ой!", "yandex", "captcha", "bare", "Yandex's captcha", 0.75),
)
