"""Pages a second of the model road on a GPU: `python3 benchmarks/gpu_pages.py PROMPTS [GGUF]`, with PyTorch and
transformers alone. PROMPTS is what `python -m benchmarks.gpu_pages` writes where Scrapeyard is installed: the questions
of pages, as JSON. Without a GGUF file the weights are random, which tells speed and nothing else.

Every answer has ANSWER tokens, whatever the model would say, so that figures do not depend on when it stops. Batches
are made in two ways: of pages as they come, padded and masked; and of pages of about one length, filled up to exactly
one length, which needs no mask and so the fast kernels of attention.
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

PAGES, ANSWER = 512, 96
BATCHES = (1, 16, 64, 128, 256, 512)
LARGER = {
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "vocab_size": 151_936,
}
"""An architecture of 1.5 billion parameters."""


def write_questions(path: Path) -> None:
    """Questions about pages of a made shop, with as much text around the product as a real page has: 1 to 3 times 700
    tokens and more."""
    from tests.services.made_shop import FIELDS, made_page

    from scrapeyard.builtin.extraction.asking import question_for
    from scrapeyard.builtin.extraction.fields import wanted_of
    from scrapeyard.builtin.extraction.reduced import pieces_of, shown
    from scrapeyard_sdk.extract.patterns.tree import PageTree

    fields = wanted_of({"fields": FIELDS}).fields
    words = "It stands well in a hall or a kitchen, and it is made by hand from wood of the north. "
    questions = []
    for number in range(PAGES):
        page = made_page(number, extra=f"<p>{words * 8}</p>" * (5 + number * 7 % 15))
        question = question_for(shown(pieces_of(PageTree(page.html)), 20_000)[0], fields)
        questions.append([question.task, question.text])
    path.write_text(json.dumps(questions), "utf-8")


def measure(questions: list[list[str]], gguf: Path | None) -> None:
    """Print a line for each size of batch."""
    torch, transformers = import_module("torch"), import_module("transformers")
    model, encode, name = _loaded(torch, transformers, gguf)
    prompts = [encode(question) for question in questions]
    tokens = sum(map(len, prompts)) / len(prompts)
    lengths = [len(each) for each in prompts]
    print(f"{name}: {len(prompts)} pages of {min(lengths)} to {max(lengths)} tokens, {tokens:.0f} in the mean")
    for batch in BATCHES:
        for way, cut in (("as they come", _as_they_come), ("by length", _by_length)):
            batches = cut(prompts[: max(batch, min(PAGES, 4 * batch))], batch)
            _answered(torch, model, batches[-1])
            torch.cuda.synchronize()
            began = time.perf_counter()
            for each in batches:
                _answered(torch, model, each)
            torch.cuda.synchronize()
            rate = sum(map(len, batches)) / (time.perf_counter() - began)
            print(
                f"{name}: batch {batch}, {way}: {rate:.1f} pages/s, {tokens:.0f} + {ANSWER} tokens a page", flush=True
            )


def _as_they_come(prompts: list[list[int]], batch: int) -> list[list[list[int]]]:
    return [prompts[start : start + batch] for start in range(0, len(prompts), batch)]


def _by_length(prompts: list[list[int]], batch: int) -> list[list[list[int]]]:
    """Batches of one length each. What fills a page up stands between its text and the end of the prompt."""
    ends = next(n for n in range(1, len(prompts[0])) if prompts[0][-n - 1] != prompts[-1][-n - 1])
    found = []
    for each in _as_they_come(sorted(prompts, key=len), batch):
        longest = max(map(len, each))
        found.append([one[:-ends] + [one[-ends]] * (longest - len(one)) + one[-ends:] for one in each])
    return found


def _answered(torch: Any, model: Any, prompts: list[list[int]]) -> None:
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(each)) + each for each in prompts], device="cuda")
    mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in prompts], device="cuda")
    with torch.inference_mode():
        model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=ANSWER,
            min_new_tokens=ANSWER,
            do_sample=False,
            pad_token_id=0,
        )


def _loaded(torch: Any, transformers: Any, gguf: Path | None) -> tuple[Any, Any, str]:
    if gguf is not None:
        given = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
        tokenizer = transformers.AutoTokenizer.from_pretrained(**given)
        model = transformers.AutoModelForCausalLM.from_pretrained(**given, dtype=torch.bfloat16).cuda().eval()

        def encode(question: list[str]) -> list[int]:
            said = [{"role": "system", "content": question[0]}, {"role": "user", "content": question[1]}]
            found = tokenizer.apply_chat_template(said, add_generation_prompt=True, tokenize=False)
            return list(tokenizer(found, add_special_tokens=False)["input_ids"])

        return model, encode, gguf.stem
    config = transformers.Qwen2Config(**LARGER, max_position_embeddings=8192)
    torch.set_default_dtype(torch.bfloat16)
    model = transformers.AutoModelForCausalLM.from_config(config).cuda().eval()
    return model, lambda question: [7 + ord(letter) for letter in "".join(question)[::4]], "1.5 B, random weights"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        write_questions(Path("build/questions.json"))
    else:
        measure(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
