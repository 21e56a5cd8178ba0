"""Words for events of fetching."""

WORDS: dict[str, dict[str, str]] = {
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
    "robots.not_had": {
        "en": "The robots.txt of {host} cannot be had: {problem}",
        "ko": "{host}의 robots.txt를 가져올 수 없습니다: {problem}",
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
}
