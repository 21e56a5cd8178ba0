// What one realm of a page (window, frame or worker) knows of its browser.
async function look(realm) {
    const n = realm.navigator, intl = realm.Intl.DateTimeFormat().resolvedOptions();
    const hints = await n.userAgentData.getHighEntropyValues(
        ['architecture', 'bitness', 'model', 'platformVersion', 'uaFullVersion', 'fullVersionList', 'formFactors']);
    const gl = new realm.OffscreenCanvas(8, 8).getContext('webgl');
    const info = gl && gl.getExtension('WEBGL_debug_renderer_info');
    return {
        agent: n.userAgent, version: n.appVersion, platform: n.platform, language: n.language, languages: [...n.languages],
        cores: n.hardwareConcurrency, memory: n.deviceMemory, webdriver: n.webdriver ?? false, hints,
        zone: intl.timeZone, locale: intl.locale, offset: new realm.Date(2026, 0, 1).getTimezoneOffset(),
        number: (1234.5).toLocaleString(), renderer: info && gl.getParameter(info.UNMASKED_RENDERER_WEBGL),
        read: reads(realm),
    };
}
// How often the console looks into what it is given: it does when somebody listens.
function reads(realm) {
    let count = 0;
    const error = new realm.Error();
    Object.defineProperty(error, 'stack', { get() { count++; return ''; } });
    const thing = {};
    Object.defineProperty(thing, 'id', { enumerable: true, get() { count++; return 1; } });
    for (const each of [error, thing]) for (const say of ['debug', 'log', 'dir', 'table']) realm.console[say](each);
    return count;
}
