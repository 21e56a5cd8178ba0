"""The words of every event, in English and Korean. A test checks that none is missing and that both use equal fields.

Keep the list sorted by event name. A name is `part.what_happened`.
"""

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
    "budget.away": {
        "en": "Redis does not answer ({error}); jobs are held to their budgets by what was last heard of other workers",
        "ko": "Redis가 응답하지 않습니다({error}). 작업 예산은 다른 워커에 대해 마지막으로 알려진 값으로 지킵니다",
    },
    "budget.back": {
        "en": "Redis answers again; budgets of jobs are shared",
        "ko": "Redis가 다시 응답합니다. 작업 예산을 공유합니다",
    },
    "budget.nearly_used": {
        "en": "Run {run}: {used} of the {whose}'s budget of {allowed} {budget} is used up",
        "ko": "실행 {run}: {whose} 예산 {budget} {allowed} 중 {used}을(를) 사용했습니다",
    },
    "budget.refused": {
        "en": "Redis refused to add up a job's budget: {error}",
        "ko": "Redis가 작업 예산 합산을 거부했습니다: {error}",
    },
    "cache.away": {
        "en": "The shared page cache cannot be used ({error}); pages are fetched instead",
        "ko": "공유 페이지 캐시를 사용할 수 없습니다({error}). 페이지를 직접 가져옵니다",
    },
    "cache.back": {
        "en": "The shared page cache answers again",
        "ko": "공유 페이지 캐시가 다시 응답합니다",
    },
    "cache.behind": {
        "en": "More than {limit_bytes} bytes of pages wait for the shared cache; the oldest are not written",
        "ko": "공유 캐시에 쓸 페이지가 {limit_bytes}바이트를 넘어 가장 오래된 것은 쓰지 않습니다",
    },
    "cache.broken": {
        "en": "The page cache met a fault of ours: {error}",
        "ko": "페이지 캐시에서 내부 오류가 발생했습니다: {error}",
    },
    "cache.not_dropped": {
        "en": "Pages that were invalidated could not be dropped from the shared cache: {error}",
        "ko": "무효화된 페이지를 공유 캐시에서 삭제하지 못했습니다: {error}",
    },
    "cache.not_heard": {
        "en": "Invalidations of pages are not heard ({error}); trying again",
        "ko": "페이지 무효화 신호를 들을 수 없습니다({error}). 다시 시도합니다",
    },
    "cache.refused": {
        "en": "The shared page cache refused a page: {error}",
        "ko": "공유 페이지 캐시가 페이지를 거부했습니다: {error}",
    },
    "cache.slow": {
        "en": "The shared page cache took longer than {seconds} s; it is left alone for a second at a time",
        "ko": "공유 페이지 캐시가 {seconds}초 넘게 걸려 1초씩 쉬게 합니다",
    },
    "cache.unreadable": {
        "en": "The kept page {page} cannot be read ({error}); it was removed",
        "ko": "보관된 페이지 {page}을(를) 읽을 수 없어({error}) 삭제했습니다",
    },
    "cache.unwritten": {
        "en": "Stopped with {count} pages that were not written to the shared cache",
        "ko": "공유 캐시에 쓰지 못한 페이지 {count}개를 남기고 멈췄습니다",
    },
    "dispatch.announce_failed": {
        "en": "The end of run {run} could not be announced ({error}); waiters ask the store",
        "ko": "실행 {run}의 종료를 알리지 못했습니다({error}). 대기 중인 호출은 저장소에서 확인합니다",
    },
    "dispatch.duty_broken": {
        "en": "The dispatcher's duty {duty} failed in an unforeseen way: {error}",
        "ko": "디스패처 작업 {duty}이(가) 예기치 않게 실패했습니다: {error}",
    },
    "dispatch.duty_failed": {
        "en": "The dispatcher's duty {duty} could not be done ({error}); trying again",
        "ko": "디스패처 작업 {duty}을(를) 하지 못했습니다({error}). 다시 시도합니다",
    },
    "dispatch.follows": {
        "en": "Dispatcher {dispatcher} does not lead any more",
        "ko": "디스패처 {dispatcher}이(가) 더 이상 리더가 아닙니다",
    },
    "dispatch.leads": {
        "en": "Dispatcher {dispatcher} leads",
        "ko": "디스패처 {dispatcher}이(가) 리더가 되었습니다",
    },
    "dispatch.lost_deliveries": {
        "en": "Published {count} runs again that the queue had lost",
        "ko": "큐에서 사라진 실행 {count}건을 다시 보냈습니다",
    },
    "dispatch.lost_worker": {
        "en": "Run {run} ended as {exit_reason}: worker {worker} was lost",
        "ko": "워커 {worker}이(가) 사라져 실행 {run}이(가) {exit_reason}(으)로 끝났습니다",
    },
    "dispatch.runs_removed": {
        "en": "Removed {count} runs whose retention ended",
        "ko": "보존 기간이 지난 실행 {count}건을 삭제했습니다",
    },
    "dispatch.taken_over": {
        "en": "Worker {worker} was lost; run {run} goes to attempt {attempt}",
        "ko": "워커 {worker}이(가) 사라져 실행 {run}을(를) {attempt}번째로 시도합니다",
    },
    "environments.broken": {
        "en": "Building the environment of {scraper} met a fault of ours: {error}",
        "ko": "{scraper}의 환경을 만드는 중 내부 오류가 발생했습니다: {error}",
    },
    "environments.failed": {
        "en": "The environment of {scraper} cannot be built: {problem}",
        "ko": "{scraper}의 환경을 만들 수 없습니다: {problem}",
    },
    "environments.ready": {
        "en": "Environment {key} of {scraper} is ready after {seconds} s",
        "ko": "{scraper}의 환경 {key}이(가) {seconds}초 만에 준비되었습니다",
    },
    "environments.removed": {
        "en": "Removed {count} environments to make room",
        "ko": "공간을 확보하려고 환경 {count}개를 삭제했습니다",
    },
    "extract.parser_lost": {
        "en": "A page of {host} ended its parser process: {error}",
        "ko": "{host}의 페이지가 파서 프로세스를 종료시켰습니다: {error}",
    },
    "extract.too_slow": {
        "en": "Reading a page of {host} took longer than {seconds} s; its parser process was ended",
        "ko": "{host}의 페이지를 읽는 데 {seconds}초가 넘게 걸려 파서 프로세스를 종료했습니다",
    },
    "fetch.refused_address": {
        "en": "Refused to fetch from {host}: {address} is a {kind} address",
        "ko": "{host}에서 가져오기를 거부했습니다: {address}은(는) {kind} 주소입니다",
    },
    "fetch.session_lost": {
        "en": "The cookies of session {session} of {scraper} could not be kept: {error}",
        "ko": "{scraper}의 세션 {session} 쿠키를 보관하지 못했습니다: {error}",
    },
    "fetch.session_unread": {
        "en": "The cookies of session {session} of {scraper} could not be read: {error}",
        "ko": "{scraper}의 세션 {session} 쿠키를 읽지 못했습니다: {error}",
    },
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
    "jobs.batch_lost": {
        "en": "The worker of a batch of job {job} fell silent: {waiting} items wait for another attempt, {ended} ended",
        "ko": "작업 {job}의 배치 워커가 응답하지 않습니다. 항목 {waiting}개는 재시도 대기, {ended}개는 종료되었습니다",
    },
    "jobs.breaker_moved": {
        "en": "The breaker of job {job} is {state}",
        "ko": "작업 {job}의 차단기가 {state} 상태입니다",
    },
    "jobs.breaker_opened": {
        "en": "The breaker of job {job} opened: {reason}; nothing is handed out until it has cooled down",
        "ko": "작업 {job}의 차단기가 열렸습니다: {reason}. 대기 시간이 지날 때까지 항목을 내보내지 않습니다",
    },
    "jobs.budget": {
        "en": "Job {job}: {used} of its budget of {allowed} {budget} ({state})",
        "ko": "작업 {job}: 예산 {budget} {allowed} 중 {used} 사용 ({state})",
    },
    "jobs.changed": {
        "en": "The policy of job {job} was changed by a call",
        "ko": "호출에 따라 작업 {job}의 정책을 변경했습니다",
    },
    "jobs.created": {
        "en": "Job {job} was made for {scraper}, its items come from: {source}",
        "ko": "작업 {job}이(가) {scraper}(으)로 만들어졌습니다. 항목 출처: {source}",
    },
    "jobs.deleted": {
        "en": "Job {job} was deleted by a call",
        "ko": "호출에 따라 작업 {job}을(를) 삭제했습니다",
    },
    "jobs.files_written": {
        "en": "The files of job {job}, which is {status}, are written",
        "ko": "작업 {job}({status})의 파일을 모두 기록했습니다",
    },
    "jobs.finishing_failed": {
        "en": "The files of job {job} could not be written (try {tries}): {error}",
        "ko": "작업 {job}의 파일을 쓰지 못했습니다({tries}번째 시도): {error}",
    },
    "jobs.finishing_waits": {
        "en": "The files of job {job} are written later: {error}",
        "ko": "작업 {job}의 파일은 나중에 씁니다: {error}",
    },
    "jobs.lost_batches": {
        "en": "{count} batches were not in the queue any more and were published again",
        "ko": "배치 {count}개가 큐에서 사라져 다시 넣었습니다",
    },
    "jobs.moved": {
        "en": "Job {job} is {status}",
        "ko": "작업 {job}이(가) {status} 상태가 되었습니다",
    },
    "jobs.not_told": {
        "en": "Others could not be told on {channel} and will find out by themselves: {error}",
        "ko": "{channel}(으)로 알리지 못했습니다. 다른 프로세스가 스스로 알게 됩니다: {error}",
    },
    "jobs.redriven": {
        "en": "{items} items of job {job} are run again",
        "ko": "작업 {job}의 항목 {items}개를 다시 실행합니다",
    },
    "jobs.removed": {
        "en": "Job {job} was kept long enough and is removed",
        "ko": "작업 {job}의 보관 기간이 지나 삭제했습니다",
    },
    "meters.not_written": {
        "en": "What was received could not be written ({error}); it is kept and written later",
        "ko": "수신량을 기록하지 못했습니다({error}). 보관했다가 나중에 기록합니다",
    },
    "proxies.back": {
        "en": "Proxy {proxy} serves again",
        "ko": "프록시 {proxy}이(가) 다시 작동합니다",
    },
    "proxies.place_ignored": {
        "en": "Pool {pool} leaves out what it cannot serve of {country}/{state}/{city}: {why}",
        "ko": "풀 {pool}은(는) {country}/{state}/{city} 중 지원하지 않는 값을 뺍니다: {why}",
    },
    "proxies.pool_unreadable": {
        "en": "Pool {pool} is left out, since what is kept of it cannot be used: {error}",
        "ko": "저장된 정의를 사용할 수 없어 풀 {pool}을(를) 제외합니다: {error}",
    },
    "proxies.pools_unknown": {
        "en": "The pools kept by the API could not be read ({error}); those last known serve",
        "ko": "API로 등록한 풀을 읽지 못했습니다({error}). 마지막으로 알려진 풀을 사용합니다",
    },
    "proxies.rests": {
        "en": "Proxy {proxy} failed and rests for {seconds} s",
        "ko": "프록시 {proxy}이(가) 실패하여 {seconds}초 동안 쉽니다",
    },
    "proxies.standing_untold": {
        "en": "How the proxies do could not be told ({error})",
        "ko": "프록시 상태를 알리지 못했습니다({error})",
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
    "repository.changed": {
        "en": "{came} versions of scrapers came and {went} went",
        "ko": "스크레이퍼 버전 {came}개가 추가되고 {went}개가 사라졌습니다",
    },
    "repository.copy_unreadable": {
        "en": "The copy of {scraper} on this machine cannot be read ({error}); it is fetched again",
        "ko": "이 컴퓨터에 있는 {scraper} 사본을 읽을 수 없어({error}) 다시 가져옵니다",
    },
    "repository.evict_failed": {
        "en": "Old copies of scrapers could not be removed: {error}",
        "ko": "오래된 스크레이퍼 사본을 삭제하지 못했습니다: {error}",
    },
    "repository.evicted": {
        "en": "Removed {count} old copies of scrapers",
        "ko": "오래된 스크레이퍼 사본 {count}개를 삭제했습니다",
    },
    "repository.fresh": {
        "en": "The scrapers of {source} are up to date again",
        "ko": "{source}의 스크레이퍼가 다시 최신 상태입니다",
    },
    "repository.git_anew": {
        "en": "The local copy of {source} is in no good state ({error}); getting it anew",
        "ko": "{source}의 로컬 사본 상태가 올바르지 않습니다({error}). 새로 받습니다",
    },
    "repository.git_tags_dropped": {
        "en": "{source} has too many tags; {count} of the oldest are not looked at",
        "ko": "{source}에 태그가 너무 많아 오래된 태그 {count}개는 확인하지 않습니다",
    },
    "repository.invalid": {
        "en": "The scraper {scraper} cannot run: {problem}",
        "ko": "스크레이퍼 {scraper}을(를) 실행할 수 없습니다: {problem}",
    },
    "repository.loaded": {
        "en": "Took {scraper} from {source}",
        "ko": "{source}에서 {scraper}을(를) 불러왔습니다",
    },
    "repository.move_untold": {
        "en": "The others could not be told of a moved channel of {scraper} ({error}); they find it within ten seconds",
        "ko": "{scraper}의 채널 이동을 다른 프로세스에 알리지 못했습니다({error}). 10초 안에 스스로 확인합니다",
    },
    "repository.moves_unknown": {
        "en": "The channels that operators moved could not be read ({error}); trying again",
        "ko": "운영자가 옮긴 채널을 읽지 못했습니다({error}). 다시 시도합니다",
    },
    "repository.ready": {
        "en": "Found {scrapers} scrapers ({invalid} invalid) in {sources} and built in",
        "ko": "{sources} 및 내장 스크레이퍼 {scrapers}개를 찾았습니다(오류 {invalid}개)",
    },
    "repository.removed": {
        "en": "The scraper {scraper} is gone from {source}",
        "ko": "스크레이퍼 {scraper}이(가) {source}에서 사라졌습니다",
    },
    "repository.stale": {
        "en": "The scrapers of {source} may be out of date ({reason}); what is known goes on serving",
        "ko": "{source}의 스크레이퍼가 최신이 아닐 수 있습니다({reason}). 이미 확인된 것을 계속 사용합니다",
    },
    "repository.state_unreadable": {
        "en": "What {source} last offered cannot be read ({error}); it is asked anew",
        "ko": "{source}이(가) 마지막으로 제공한 목록을 읽을 수 없어({error}) 새로 요청합니다",
    },
    "repository.state_unwritten": {
        "en": "What {source} offers could not be kept for the next start: {error}",
        "ko": "{source}이(가) 제공하는 목록을 다음 시작을 위해 저장하지 못했습니다: {error}",
    },
    "repository.too_many": {
        "en": "The scrapers' folder {folder} holds more than is looked at; only {count} scrapers are known",
        "ko": "스크레이퍼 폴더 {folder}에 항목이 너무 많아 스크레이퍼 {count}개만 인식합니다",
    },
    "results.export_broken": {
        "en": "Export {export} of job {job} met a fault of ours: {error}",
        "ko": "작업 {job}의 내보내기 {export}에서 내부 오류가 발생했습니다: {error}",
    },
    "results.export_done": {
        "en": "Export {export} of job {job} is written: {type} as {format}, {rows} rows, {bytes} bytes",
        "ko": "작업 {job}의 내보내기 {export} 작성 완료: {type}({format}), {rows}행, {bytes}바이트",
    },
    "results.export_failed": {
        "en": "Export {export} of job {job} failed: {error}",
        "ko": "작업 {job}의 내보내기 {export} 실패: {error}",
    },
    "results.export_lost": {
        "en": "Export {export} of job {job} was taken over by another; stopped",
        "ko": "작업 {job}의 내보내기 {export}을(를) 다른 곳에서 맡아 중단했습니다",
    },
    "results.export_waits": {
        "en": "Export {export} of job {job} waits: {error}",
        "ko": "작업 {job}의 내보내기 {export} 대기 중: {error}",
    },
    "results.finished": {
        "en": "Manifests of job {job} are written: {items} items, {success} successes, {errors} errors",
        "ko": "작업 {job}의 매니페스트 작성 완료: 항목 {items}개, 성공 {success}개, 오류 {errors}개",
    },
    "results.snapshots_kept": {
        "en": "Pages of job {job} were compared in {scope}: {changes}",
        "ko": "작업 {job}의 페이지를 {scope}에서 비교했습니다: {changes}",
    },
    "robots.not_had": {
        "en": "The robots.txt of {host} cannot be had: {problem}",
        "ko": "{host}의 robots.txt를 가져올 수 없습니다: {problem}",
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
    "schedules.missed": {
        "en": "Schedule {schedule}: {reason}",
        "ko": "일정 {schedule}: {reason}",
    },
    "schedules.not_started": {
        "en": "Schedule {schedule} started nothing this time ({state}): {reason}",
        "ko": "일정 {schedule}이(가) 이번에는 아무것도 시작하지 않았습니다({state}): {reason}",
    },
    "schedules.started": {
        "en": "Schedule {schedule} started {subject}",
        "ko": "일정 {schedule}이(가) {subject}을(를) 시작했습니다",
    },
    "secrets.unreadable": {
        "en": "The secrets of scrapers cannot be read: {problem}",
        "ko": "스크래퍼의 비밀 값을 읽을 수 없습니다: {problem}",
    },
    "sites.away": {
        "en": "The shared limits of sites do not answer ({error}); each worker keeps to them by itself",
        "ko": "공유 사이트 제한이 응답하지 않습니다({error}). 각 워커가 따로 제한을 지킵니다",
    },
    "sites.back": {
        "en": "The workers share the limits of sites again after {away_seconds} s",
        "ko": "워커들이 {away_seconds}초 만에 사이트 제한을 다시 공유합니다",
    },
    "sites.refused": {
        "en": "The server refused a question about a site ({error}); this worker decides by itself",
        "ko": "서버가 사이트 관련 요청을 거부했습니다({error}). 이 워커가 스스로 판단합니다",
    },
    "sites.settings_unknown": {
        "en": "The settings of sites could not be read ({error}); those last known stay in force",
        "ko": "사이트 설정을 읽지 못했습니다({error}). 마지막으로 확인한 설정을 계속 사용합니다",
    },
    "sites.settings_untold": {
        "en": "The others could not be told of new settings of {site} ({error}); they find them within seconds",
        "ko": "{site}의 새 설정을 다른 프로세스에 알리지 못했습니다({error}). 몇 초 안에 스스로 확인합니다",
    },
    "solver.away": {
        "en": "The solver does not answer ({error}); challenges are not passed meanwhile",
        "ko": "솔버가 응답하지 않습니다({error}). 그동안 챌린지를 통과할 수 없습니다",
    },
    "solver.failed": {
        "en": "The solver could not pass the challenge of {site} ({reason}): {error}",
        "ko": "솔버가 {site}의 챌린지를 통과하지 못했습니다({reason}): {error}",
    },
    "solver.solved": {
        "en": "The solver passed the challenge of {site} in {seconds} s",
        "ko": "솔버가 {site}의 챌린지를 {seconds}초 만에 통과했습니다",
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
    "ways.away": {
        "en": "What is remembered of sites is not shared for now ({error}); this process remembers for itself",
        "ko": "사이트에 대한 기억을 지금은 공유할 수 없습니다({error}). 이 프로세스는 자체적으로 기억합니다",
    },
    "ways.back": {
        "en": "What is remembered of sites is shared again",
        "ko": "사이트에 대한 기억을 다시 공유합니다",
    },
    "ways.blocked": {
        "en": "{site} refused the way {way} with status {status} ({kind}): {reason}",
        "ko": "{site}이(가) {way} 경로를 상태 {status}(으)로 거부했습니다({kind}): {reason}",
    },
    "ways.refused": {
        "en": "Redis refused to remember: {error}",
        "ko": "Redis가 기억 저장을 거부했습니다: {error}",
    },
    "ways.unreadable": {
        "en": "A clearance of {site} cannot be read and is left out: {error}",
        "ko": "{site}의 통과 정보를 읽을 수 없어 제외합니다: {error}",
    },
    "webhooks.delivered": {
        "en": "The receiver took {event_name} of {subject} ({delivery}): {status} in {ms} ms",
        "ko": "수신자가 {subject}의 {event_name}을(를) 받았습니다({delivery}): {ms}ms, {status}",
    },
    "webhooks.given_up": {
        "en": "{event_name} of {subject} was not taken in {attempts} attempts and is given up ({delivery}): {error}",
        "ko": "{subject}의 {event_name}이(가) {attempts}번 시도에도 전달되지 않아 포기합니다({delivery}): {error}",
    },
    "webhooks.later": {
        "en": "{event_name} of {subject} is sent again later, after attempt {attempts} ({delivery}): {error}",
        "ko": "{subject}의 {event_name}을(를) {attempts}번째 시도 후 나중에 다시 보냅니다({delivery}): {error}",
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
