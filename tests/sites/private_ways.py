"""Ways by which a page can try to reach a private address. Each names itself in the path that it asks for."""

from collections.abc import Callable

Url = Callable[..., str]
"""URL of the listener by the name of a way; `host` and `scheme` spell it otherwise."""

SPELLINGS = {
    "v4": "127.0.0.1",
    "v4-other": "127.1.2.3",
    "v4-short": "127.1",
    "v4-decimal": "2130706433",
    "v4-hex": "0x7f000001",
    "v4-hex-parts": "0x7f.0x0.0x0.0x1",
    "v4-octal": "0177.0.0.01",
    "v4-any": "0.0.0.0",
    "v4-zero": "0",
    "v4-dot": "127.0.0.1.",
    "v4-wide": "\uff11\uff12\uff17.0.0.1",
    "v4-circled": "\u2460\u2461\u2466.0.0.1",
    "v6": "[::1]",
    "v6-any": "[::]",
    "v6-mapped": "[::ffff:127.0.0.1]",
    "v6-mapped-hex": "[::ffff:7f00:1]",
    "name": "localhost",
    "name-below": "www.localhost",
    "name-dot": "localhost.",
    "name-upper": "LOCALHOST",
    "name-public": "loop.example",
    "name-mixed": "mixed.example",
}
"""Of this machine."""
UNREACHABLE = {
    "private-10": "10.0.0.1",
    "private-172": "172.16.0.1",
    "private-192": "192.168.1.1",
    "metadata": "169.254.169.254",
    "metadata-hex": "0xa9fea9fe",
    "metadata-v6": "[fd00:ec2::254]",
    "link-local-v6": "[fe80::1]",
    "name-private": "ten.example",
}
"""Elsewhere: no listener would see them, but the proxy must refuse them."""
STATUSES = (301, 302, 303, 307, 308)

_ELEMENTS = {
    "img": '<img src="{}">',
    "srcset": '<img srcset="{} 1x">',
    "picture": '<picture><source srcset="{}"><img></picture>',
    "input-image": '<input type=image src="{}">',
    "script": '<script src="{}"></script>',
    "module": '<script type=module src="{}"></script>',
    "stylesheet": '<link rel=stylesheet href="{}">',
    "import": '<style>@import url("{}");</style>',
    "background": '<div style="background: url({}); width: 9px; height: 9px">x</div>',
    "content": '<style>#c::before {{ content: url("{}"); }}</style><p id=c>x',
    "cursor": '<style>#u {{ cursor: url("{}"), auto; }}</style><p id=u>x',
    "font": '<style>@font-face {{ font-family: f; src: url("{}"); }} #f {{ font-family: f; }}</style><p id=f>text',
    "video": '<video src="{}" preload=auto></video>',
    "poster": '<video poster="{}"></video>',
    "audio": '<audio src="{}" preload=auto></audio>',
    "source": '<audio preload=auto><source src="{}"></audio>',
    "track": '<video src="/silence" preload=auto><track default kind=subtitles src="{}"></video>',
    "object": '<object data="{}"></object>',
    "embed": '<embed src="{}" type="text/html">',
    "iframe": '<iframe src="{}"></iframe>',
    "srcdoc": "<iframe srcdoc='<img src=\"{}\">'></iframe>",
    "data-frame": "<iframe src='data:text/html,<img src=\"{}\">'></iframe>",
    "fencedframe": '<fencedframe src="{}"></fencedframe>',
    "svg-image": '<svg><image href="{}" width=9 height=9></image></svg>',
    "svg-use": '<svg><use href="{}#a"></use></svg>',
    "svg-filter": '<svg><filter id=i><feImage href="{}"/></filter><rect width=9 height=9 filter="url(#i)"/></svg>',
    "preload": '<link rel=preload as=image href="{}">',
    "modulepreload": '<link rel=modulepreload href="{}">',
    "prefetch": '<link rel=prefetch href="{}">',
    "prerender": '<link rel=prerender href="{}">',
    "preconnect": '<link rel=preconnect href="{}">',
    "dns-prefetch": '<link rel=dns-prefetch href="{}">',
    "icon": '<link rel=icon href="{}">',
    "manifest": '<link rel=manifest href="{}">',
    "speculation": '<script type=speculationrules>{{"prerender":[{{"source":"list","urls":["{}"]}}]}}</script>',
    "speculation-prefetch": '<script type=speculationrules>{{"prefetch":[{{"source":"list","urls":["{}"]}}]}}</script>',
    "csp-report": "",  # by the header of the page
    "report-to": "<p onclick=1>",
    "nel": "",
    "link-header": "",
    "alt-svc": "",
}
_SCRIPTS = {
    "fetch": "fetch('{}')",
    "fetch-no-cors": "fetch('{}', {{mode: 'no-cors', method: 'POST', body: 'x', keepalive: true}})",
    "xhr": "new Promise((d) => {{ let x = new XMLHttpRequest(); x.onloadend = d; x.open('GET', '{}'); x.send(); }})",
    "beacon": "navigator.sendBeacon('{}', 'x')",
    "event-source": "new EventSource('{}')",
    "image-object": "new Image().src = '{}'",
    "font-face": "new FontFace('g', 'url({})').load()",
    "import-call": "import('{}')",
    "worker-import": "new Worker(URL.createObjectURL(new Blob([\"importScripts('{}')\"])))",
    "worker-fetch": "new Worker(URL.createObjectURL(new Blob([\"fetch('{}', {{mode: 'no-cors'}})\"])))",
    "shared-worker": "new SharedWorker(URL.createObjectURL(new Blob([\"fetch('{}', {{mode: 'no-cors'}})\"])))",
    "xslt": "document.body.append(Object.assign(document.createElement('iframe'), {{src: '/xslt?{}'}}))",
    "background-fetch": "navigator.serviceWorker.ready.then((r) => r.backgroundFetch.fetch('b', ['{}']))",
    "fetch-later": "fetchLater('{}', {{activateAfter: 0}})",
    "service-worker": "navigator.serviceWorker.register('/worker.js?{}')",
    "payment": "new PaymentRequest([{{supportedMethods: '{}'}}], {{total: {{label: 'x', amount: "
    "{{currency: 'EUR', value: '1'}}}}}}).canMakePayment()",
    "shared-storage": "sharedStorage.worklet.addModule('{}')",
    "paint-worklet": "CSS.paintWorklet.addModule('{}')",
    "audio-worklet": "new AudioContext().audioWorklet.addModule('{}')",
    "video-live": "document.body.append(Object.assign(document.createElement('video'), {{src: '{}', autoplay: true}}))",
}
_MOVES = {
    "location": "<script>location = '{}'</script>",
    "location-replace": "<script>location.replace('{}')</script>",
    "meta-refresh": '<meta http-equiv=refresh content="0; url={}">',
    "refresh-header": "",  # by a header
    "form-get": '<form id=f action="{}"><input name=a></form><script>f.submit()</script>',
    "form-post": '<form id=f method=post action="{}"><input name=a></form><script>f.submit()</script>',
    "click": '<a id=a href="{}">x</a><script>a.click()</script>',
    "base": '<base href="{}"><img src="x">',
    "blob-frame": "<script>let b = new Blob(['<img src=\"{}\">'], {{type: 'text/html'}});"
    "location = URL.createObjectURL(b)</script>",
}
CLICKS = {
    "target-blank": '<a id=go target=_blank href="{}">x</a>',
    "window-open": "<button id=go onclick=\"open('{}')\">x</button>",
    "popup-location": "<button id=go onclick=\"open('about:blank').location = '{}'\">x</button>",
    "view-source": "<button id=go onclick=\"open('view-source:{}')\">x</button>",
    "ping": '<a id=go href="#x" ping="{}">x</a>',
    "download": '<a id=go download href="{}">x</a>',
    "form-popup": '<form target=_blank action="{}"><button id=go>x</button></form>',
}
"""What a browser does only after a click on `#go`."""
_SOCKETS = """
    try { new WebSocket('ws://127.0.0.1:PORT/websocket') } catch (e) {}
    try { new WebSocket('wss://127.0.0.1:PORT/websocket') } catch (e) {}
    try { new WebTransport('https://127.0.0.1:PORT/transport') } catch (e) {}
    for (let urls of ['stun:127.0.0.1:PORT', 'stun:[::1]:PORT', 'stun:localhost:PORT', 'turn:127.0.0.1:PORT',
                      'turn:127.0.0.1:PORT?transport=tcp', 'turns:127.0.0.1:PORT?transport=tcp']) {
        try {
            let peer = new RTCPeerConnection({iceServers: [{urls, username: 'u', credential: 'c'}]})
            peer.createDataChannel('x')
            peer.createOffer().then((offer) => peer.setLocalDescription(offer))
        } catch (e) {}
    }
    let one = new RTCPeerConnection(), two = new RTCPeerConnection()
    one.createDataChannel('x')
    one.createOffer().then(async (offer) => {
        await one.setLocalDescription(offer)
        await two.setRemoteDescription(offer)
        let answer = await two.createAnswer()
        await two.setLocalDescription(answer)
        await one.setRemoteDescription(answer)
        for (let kind of ['udp', 'tcp'])
            for (let host of ['127.0.0.1', '::1'])
                await one.addIceCandidate({sdpMid: '0', candidate: `candidate:1 1 ${kind} 2130706431 ${host} PORT`
                    + ' typ host' + (kind == 'tcp' ? ' tcptype passive' : '')})
    }).catch(() => {})
"""
_SETTLED = "<script>setTimeout(() => fetch('/settled?NAME'), 2500)</script>"
"""The page asks for this when what it tries has been tried. It does not wait for `load`, which some ways hold up."""
PAGES = ("elements", "scripts", "moves")


def count_ways() -> int:
    """How many there are, beside the spellings."""
    sockets = 12
    return len(_ELEMENTS) + len(_SCRIPTS) + len(_MOVES) + len(CLICKS) + len(STATUSES) + sockets


def page_of(name: str, url: Url, port: int) -> str:
    """The HTML of one of PAGES."""
    settled = _SETTLED.replace("NAME", name)
    if name == "elements":
        return settled + "".join(html.format(url(way)) for way, html in _ELEMENTS.items())
    if name == "scripts":
        lines = [f"try {{ Promise.resolve({js.format(url(way))}).catch(() => 0) }} catch (e) {{}}"
                 for way, js in _SCRIPTS.items()]  # fmt: skip
        return settled + "<body><script>" + "\n".join(lines) + _SOCKETS.replace("PORT", str(port)) + "</script>"
    moves = [f"/moves/{way}" for way in _MOVES]
    redirects = [f"/redirects/{status}" for status in STATUSES]
    return settled + "".join(f'<iframe src="{path}"></iframe>' for path in (*moves, *redirects))


def move_of(way: str, url: Url) -> str:
    """The HTML of a page that goes elsewhere, at once or after a click."""
    return (_MOVES | CLICKS)[way].format(url(way))


def headers_of(name: str, url: Url, port: int) -> dict[str, str]:
    """Headers of a page or a move that reach out by themselves."""
    if name == "refresh-header":
        return {"refresh": f"0; url={url(name)}"}
    if name != "elements":
        return {}
    return {
        "content-security-policy-report-only": f"img-src 'none'; report-uri {url('csp-report')}",
        "content-security-policy": "script-src-attr 'none'; report-to g",
        "reporting-endpoints": f'g="https://127.0.0.1:{port}/report-to"',
        "report-to": f'{{"group":"g","max_age":9999,"endpoints":[{{"url":"https://127.0.0.1:{port}/report-to"}}]}}',
        "nel": '{"report_to":"g","max_age":9999,"success_fraction":1}',
        "link": f"<{url('link-header')}>; rel=preload; as=image",
        "alt-svc": f'h3="127.0.0.1:{port}"; ma=9999, h2="127.0.0.1:{port}"; ma=9999',
    }
