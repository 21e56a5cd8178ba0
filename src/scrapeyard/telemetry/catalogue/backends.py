"""Words for events of the queue, the store and the receiver of traces."""

WORDS: dict[str, dict[str, str]] = {
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
    "queue.listener_slow": {
        "en": "A listener on {channel} reads too slowly; {waiting} messages wait and the oldest are dropped",
        "ko": "{channel}의 수신자가 너무 느립니다. 메시지 {waiting}건이 대기 중이며 가장 오래된 것부터 버립니다",
    },
    "queue.not_put_back": {
        "en": "{count} deliveries of a cancelled taker could not be put back ({error}); they are published again later",
        "ko": "취소된 작업자의 작업 {count}건을 되돌리지 못했습니다({error}). 나중에 다시 발행됩니다",
    },
    "queue.recovered": {
        "en": "Put back {count} deliveries that a dead worker had taken",
        "ko": "죽은 워커가 가져간 작업 {count}건을 되돌렸습니다",
    },
    "queue.refused": {
        "en": "The queue refused to hand out work ({error}); trying again",
        "ko": "큐가 작업 전달을 거부했습니다({error}). 다시 시도합니다",
    },
    "store.away": {
        "en": "The database does not answer ({error}); {pending} changes are kept and tried again",
        "ko": "데이터베이스가 응답하지 않습니다({error}). 변경 {pending}건을 보관하고 다시 시도합니다",
    },
    "store.back": {
        "en": "The database answers again after {away_seconds} s",
        "ko": "데이터베이스가 {away_seconds}초 만에 다시 응답합니다",
    },
    "store.batch_refused": {
        "en": "The database refused a batch of {count} changes ({error}); writing them one by one",
        "ko": "데이터베이스가 변경 {count}건의 묶음을 거부했습니다({error}). 한 건씩 기록합니다",
    },
    "store.not_yet": {
        "en": "The database is not there yet ({error}); trying again",
        "ko": "데이터베이스가 아직 준비되지 않았습니다({error}). 다시 시도합니다",
    },
    "store.row_refused": {
        "en": "The database refused what was to be recorded of run {run}: {error}",
        "ko": "데이터베이스가 실행 {run}의 기록을 거부했습니다: {error}",
    },
    "store.unwritten": {
        "en": "Stopped with {count} changes that the database never took",
        "ko": "데이터베이스에 기록하지 못한 변경 {count}건을 남기고 멈췄습니다",
    },
    "traces.dropped": {
        "en": "Dropped the traces of {count} runs: more came than could be sent",
        "ko": "실행 {count}건의 추적 정보를 버렸습니다. 보낼 수 있는 양보다 많이 쌓였습니다",
    },
    "traces.not_sent": {
        "en": "The traces of {count} runs were not taken by the collector ({error})",
        "ko": "수집기가 실행 {count}건의 추적 정보를 받지 않았습니다({error})",
    },
    "traces.sent_again": {
        "en": "The collector takes traces again; those of {lost} runs are lost",
        "ko": "수집기가 다시 추적 정보를 받습니다. 실행 {lost}건의 추적 정보가 유실되었습니다",
    },
}
