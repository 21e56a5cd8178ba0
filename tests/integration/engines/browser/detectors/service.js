importScripts(origin + '/realm.js');
oninstall = () => skipWaiting();
onactivate = event => event.waitUntil(clients.claim());
onmessage = async event => event.source.postMessage(await look(self));
