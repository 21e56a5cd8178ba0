"""Words for events of the dispatcher, and of what it does with jobs."""

WORDS: dict[str, dict[str, str]] = {
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
}
