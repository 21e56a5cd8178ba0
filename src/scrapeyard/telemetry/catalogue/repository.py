"""Words for events of scrapers, and of what they require."""

WORDS: dict[str, dict[str, str]] = {
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
    "secrets.unreadable": {
        "en": "The secrets of scrapers cannot be read: {problem}",
        "ko": "스크래퍼의 비밀 값을 읽을 수 없습니다: {problem}",
    },
}
