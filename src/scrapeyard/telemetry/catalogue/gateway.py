"""Words for events of the gateway, and of the lists that it takes in."""

WORDS: dict[str, dict[str, str]] = {
    "gateway.client_gone": {
        "en": "The client hung up while it sent its request to {path}",
        "ko": "클라이언트가 {path} 요청을 보내던 중 연결을 끊었습니다",
    },
    "gateway.listening": {
        "en": "Listening on {url}",
        "ko": "{url}에서 요청을 기다립니다",
    },
    "gateway.not_heard": {
        "en": "The channel {channel} is not heard ({error}); listening again",
        "ko": "채널 {channel}을(를) 들을 수 없습니다({error}). 다시 연결합니다",
    },
    "gateway.publish_deferred": {
        "en": "{count} accepted runs could not be published ({error}); the dispatcher will",
        "ko": "접수한 실행 {count}건을 큐에 보내지 못했습니다({error}). 디스패처가 보냅니다",
    },
    "gateway.refresh_failed": {
        "en": "A look at the scrapers that somebody asked for failed: {error}",
        "ko": "요청받은 스크레이퍼 확인에 실패했습니다: {error}",
    },
    "gateway.signal_lost": {
        "en": "The signal for {run} could not be sent: {error}",
        "ko": "{run}에 대한 신호를 보내지 못했습니다: {error}",
    },
    "gateway.sweep_failed": {
        "en": "The store could not be asked about waiting runs ({error}); trying again",
        "ko": "대기 중인 실행을 저장소에서 확인하지 못했습니다({error}). 다시 시도합니다",
    },
    "gateway.unexpected_error": {
        "en": "An unexpected error while answering {path}: {error}",
        "ko": "{path} 응답 중 예기치 않은 오류가 발생했습니다: {error}",
    },
    "gateway.watch_broken": {
        "en": "Looking at job {job} for those who watch it met a fault of ours: {error}",
        "ko": "작업 {job}을(를) 조회하다 내부 오류가 발생했습니다: {error}",
    },
    "gateway.watch_failed": {
        "en": "Job {job} cannot be looked at for those who watch it; it is tried again: {error}",
        "ko": "작업 {job}을(를) 지켜보는 이들을 위해 조회할 수 없습니다. 다시 시도합니다: {error}",
    },
    "intake.broken": {
        "en": "Reading the source of job {job} met a fault of ours: {error}",
        "ko": "작업 {job}의 원본을 읽는 중 내부 오류가 발생했습니다: {error}",
    },
    "intake.failed": {
        "en": "The source of job {job} cannot be read: {error}",
        "ko": "작업 {job}의 원본을 읽을 수 없습니다: {error}",
    },
    "intake.file_stays": {
        "en": "The file of job {job}'s list stays until the job is removed: {error}",
        "ko": "작업 {job}의 목록 파일은 작업이 삭제될 때까지 남습니다: {error}",
    },
    "intake.later": {
        "en": "The source of job {job} is read later: {error}",
        "ko": "작업 {job}의 원본은 나중에 읽습니다: {error}",
    },
    "intake.lease_kept": {
        "en": "Another process can read job {job} only in some seconds: {error}",
        "ko": "다른 프로세스는 몇 초 뒤에야 작업 {job}을(를) 읽을 수 있습니다: {error}",
    },
    "intake.lease_lost": {
        "en": "Another process reads job {job} now",
        "ko": "이제 다른 프로세스가 작업 {job}을(를) 읽습니다",
    },
    "intake.not_followed": {
        "en": "The links of job {job} are followed later: {error}",
        "ko": "작업 {job}의 링크는 나중에 따라갑니다: {error}",
    },
    "intake.read": {
        "en": "The source of job {job} was read: {items} items, {bad} bad rows, {twice} there twice",
        "ko": "작업 {job}의 원본을 읽었습니다: 항목 {items}개, 잘못된 행 {bad}개, 중복 {twice}개",
    },
}
