importScripts(origin + '/realm.js');
if (self.postMessage) look(self).then(postMessage.bind(self));
onconnect = async event => event.ports[0].postMessage(await look(self));
