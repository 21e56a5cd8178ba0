import { words } from "#/words";

export const own = words(
  {
    title: "Settings",
    about:
      "What this server runs with, and where each value came from. It is read at the start: change `scrapeyard.toml`, `.env` or the environment, and start again.",
    which: "Which settings",
    all: "All",
    set: "Not the default",
    search: "Name, value or meaning",
    none: "No setting fits",
    noneSet: "Everything is at its default",
    noneSetAbout: "Set one in `scrapeyard.toml`, in `.env` or as `SCRAPEYARD_…` in the environment.",
    top: "Top level",
    empty: "empty",
    default: "default",
    otherwise: (value: string) => `default: ${value}`,
    variable: "Copy variable",
  },
  {
    title: "설정",
    about:
      "이 서버가 쓰는 값과 그 값이 어디서 왔는지 보여 줍니다. 설정은 시작할 때 읽으므로 `scrapeyard.toml`, `.env`, 환경 변수를 바꾼 뒤 다시 시작하세요.",
    which: "보여 줄 설정",
    all: "전체",
    set: "기본값이 아닌 것",
    search: "이름, 값 또는 설명",
    none: "맞는 설정이 없습니다",
    noneSet: "모두 기본값입니다",
    noneSetAbout: "`scrapeyard.toml`이나 `.env`, 또는 환경 변수 `SCRAPEYARD_…`로 바꿀 수 있습니다.",
    top: "최상위",
    empty: "비어 있음",
    default: "기본값",
    otherwise: (value: string) => `기본값: ${value}`,
    variable: "변수 이름 복사",
  },
);
