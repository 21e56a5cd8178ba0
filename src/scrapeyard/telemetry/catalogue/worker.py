"""Words for events of the worker and its children."""

WORDS: dict[str, dict[str, str]] = {
    "batch.broken": {
        "en": "Batch {batch} of job {job} met a fault of ours ({error}); its items follow when its lease ends",
        "ko": "작업 {job}의 배치 {batch}에서 내부 오류가 발생했습니다({error}). 항목은 임대가 끝나면 처리됩니다",
    },
    "batch.finished": {
        "en": "Batch {batch} of job {job}: {items} items in {seconds} s",
        "ko": "작업 {job}의 배치 {batch}: {seconds}초 동안 항목 {items}개를 처리했습니다",
    },
    "batch.not_given_back": {
        "en": "{left} items of batch {batch} could not be given back now ({error}); they follow when its lease ends",
        "ko": "배치 {batch}의 항목 {left}개를 지금 되돌리지 못했습니다({error}). 임대가 끝나면 처리됩니다",
    },
    "batch.outcome_unstorable": {
        "en": "The outcome of item {item} of job {job} could not be written ({error}); it ends as an error of ours",
        "ko": "작업 {job}의 항목 {item} 결과를 기록할 수 없어({error}) 내부 오류로 끝냅니다",
    },
    "batch.outcomes_void": {
        "en": "{count} outcomes of batch {batch} of job {job} are void ({why}); the items are handed out again",
        "ko": "작업 {job}의 배치 {batch} 결과 {count}개가 무효입니다({why}). 항목은 다시 배정됩니다",
    },
    "batch.record_late": {
        "en": "Outcomes of batch {batch} wait for the store: {error}",
        "ko": "배치 {batch}의 결과가 저장소를 기다립니다: {error}",
    },
    "batch.take_lost": {
        "en": "Batch {batch} could not be taken: {error}",
        "ko": "배치 {batch}을(를) 가져오지 못했습니다: {error}",
    },
    "extract.parser_lost": {
        "en": "A page of {host} ended its parser process: {error}",
        "ko": "{host}의 페이지가 파서 프로세스를 종료시켰습니다: {error}",
    },
    "extract.too_slow": {
        "en": "Reading a page of {host} took longer than {seconds} s; its parser process was ended",
        "ko": "{host}의 페이지를 읽는 데 {seconds}초가 넘게 걸려 파서 프로세스를 종료했습니다",
    },
    "run.finished": {
        "en": "Run {run} of {scraper} ended: {exit_reason} ({wall_ms} ms, attempt {attempt})",
        "ko": "{scraper} 실행 {run} 종료: {exit_reason} ({wall_ms} ms, {attempt}번째 시도)",
    },
    "sandbox.parent_nonsense": {
        "en": "The process of {scraper} spoke nonsense and was ended: {error}",
        "ko": "{scraper} 프로세스가 알 수 없는 응답을 보내 종료했습니다: {error}",
    },
    "sandbox.strays": {
        "en": "{scraper} had left processes behind; all of them were ended",
        "ko": "{scraper}이(가) 남긴 프로세스를 모두 종료했습니다",
    },
    "sandbox.walls_missing": {
        "en": "Children run without these walls: {missing}; `scrapeyard doctor` tells why",
        "ko": "다음 격리벽 없이 자식 프로세스를 실행합니다: {missing}. 이유는 `scrapeyard doctor`로 확인하세요",
    },
    "sandbox.zygote_gone": {
        "en": "The zygote went away; the next run starts another",
        "ko": "자이고트 프로세스가 사라졌습니다. 다음 실행 때 새로 시작합니다",
    },
    "worker.beat_broken": {
        "en": "A heartbeat met a fault of ours: {error}",
        "ko": "하트비트 중 내부 오류가 발생했습니다: {error}",
    },
    "worker.beat_lost": {
        "en": "A heartbeat was not written: {error}",
        "ko": "하트비트를 기록하지 못했습니다: {error}",
    },
    "worker.claim_lost": {
        "en": "Run {run} could not be claimed: {error}",
        "ko": "실행 {run}을(를) 점유하지 못했습니다: {error}",
    },
    "worker.draining": {
        "en": "Worker {worker} takes no more work and finishes {running} runs",
        "ko": "워커 {worker}이(가) 새 작업을 받지 않고 실행 중인 {running}건을 마칩니다",
    },
    "worker.event_lost": {
        "en": "A live event of run {run} was not sent: {error}",
        "ko": "실행 {run}의 실시간 이벤트를 보내지 못했습니다: {error}",
    },
    "worker.fault": {
        "en": "A fault of ours ended run {run}: {error}",
        "ko": "내부 오류로 실행 {run}이(가) 종료되었습니다: {error}",
    },
    "worker.foresight_broken": {
        "en": "Looking for packages to install ahead met a fault of ours: {error}",
        "ko": "미리 설치할 패키지를 찾는 중 내부 오류가 발생했습니다: {error}",
    },
    "worker.hand_back_lost": {
        "en": "Unfinished runs could not be handed back now ({error}); they follow when their leases end",
        "ko": "끝나지 않은 실행을 지금 되돌리지 못했습니다({error}). 임대가 끝나면 처리됩니다",
    },
    "worker.handed_back": {
        "en": "Worker {worker} handed {count} unfinished runs back",
        "ko": "워커 {worker}이(가) 끝나지 않은 실행 {count}건을 되돌렸습니다",
    },
    "worker.reply_lost": {
        "en": "The answer of run {run} could not be sent ({error}); its caller finds it in the store",
        "ko": "실행 {run}의 응답을 보내지 못했습니다({error}). 호출자는 저장소에서 결과를 찾습니다",
    },
    "worker.signal_broken": {
        "en": "A signal met a fault of ours: {error}",
        "ko": "신호를 처리하는 중 내부 오류가 발생했습니다: {error}",
    },
    "worker.started": {
        "en": "Worker {worker} takes work from {lanes} with {slots} slots",
        "ko": "워커 {worker}이(가) 슬롯 {slots}개로 {lanes} 레인의 작업을 받습니다",
    },
    "worker.stood_still": {
        "en": "This process stood still for {seconds} s; runs it held may have gone to others",
        "ko": "이 프로세스가 {seconds}초 동안 멈춰 있었습니다. 맡고 있던 실행은 다른 워커로 넘어갔을 수 있습니다",
    },
    "worker.take_broken": {
        "en": "Taking work met a fault of ours: {error}",
        "ko": "작업을 가져오는 중 내부 오류가 발생했습니다: {error}",
    },
}
