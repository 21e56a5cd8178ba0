"""The words of every event, in English and Korean. A test checks that none is missing and that both use equal fields.

Keep the list sorted by event name. A name is `part.what_happened`.
"""

WORDS: dict[str, dict[str, str]] = {
    "fetch.refused_address": {
        "en": "Refused to fetch from {host}: {address} is a {kind} address",
        "ko": "{host}에서 가져오기를 거부했습니다: {address}은(는) {kind} 주소입니다",
    },
    "queue.away": {
        "en": "The queue does not answer ({error}); trying again in {retry_seconds} s",
        "ko": "큐가 응답하지 않습니다({error}). {retry_seconds}초 후 다시 시도합니다",
    },
    "queue.back": {
        "en": "The queue answers again after {away_seconds} s",
        "ko": "큐가 {away_seconds}초 만에 다시 응답합니다",
    },
    "queue.dropped_message": {
        "en": "Dropped a message on {channel} that cannot be read: {error}",
        "ko": "{channel}에서 읽을 수 없는 메시지를 버렸습니다: {error}",
    },
    "queue.recovered": {
        "en": "Put back {count} deliveries that a dead worker had taken",
        "ko": "죽은 워커가 가져간 작업 {count}건을 되돌렸습니다",
    },
}
